"""A learning switch over OpenFlow 1.3, as an os-ken application.

Hosts are learned from packets that no rule matches; once both ends of a conversation are
known it gets a rule of its own, so that its packets stay in the switch.  Each packet that
arrives here is one line of output.
"""

from os_ken.base import app_manager
from os_ken.controller import ofp_event
from os_ken.controller.handler import CONFIG_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.lib.packet import ethernet, packet
from os_ken.ofproto import ofproto_v1_3


class Learning(app_manager.OSKenApp):
    OFP_VERSIONS = [ofproto_v1_3.OFP_VERSION]

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.ports = {}

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def joined(self, event):
        path = event.msg.datapath
        proto, parser = path.ofproto, path.ofproto_parser
        to_us = parser.OFPActionOutput(proto.OFPP_CONTROLLER, proto.OFPCML_NO_BUFFER)
        self.rule(path, 0, parser.OFPMatch(), to_us)
        print("joined %016x" % path.id, flush=True)

    @staticmethod
    def rule(path, priority, match, action):
        proto, parser = path.ofproto, path.ofproto_parser
        apply = parser.OFPInstructionActions(proto.OFPIT_APPLY_ACTIONS, [action])
        path.send_msg(
            parser.OFPFlowMod(
                datapath=path, priority=priority, match=match, instructions=[apply]
            )
        )

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def missed(self, event):
        message = event.msg
        path = message.datapath
        proto, parser = path.ofproto, path.ofproto_parser
        port = message.match["in_port"]
        frame = packet.Packet(message.data).get_protocol(ethernet.ethernet)
        print("missed %s > %s at %d" % (frame.src, frame.dst, port), flush=True)
        self.ports[frame.src] = port
        out = self.ports.get(frame.dst)
        action = parser.OFPActionOutput(proto.OFPP_FLOOD if out is None else out)
        if out is not None:
            match = parser.OFPMatch(in_port=port, eth_src=frame.src, eth_dst=frame.dst)
            self.rule(path, 10, match, action)
        path.send_msg(
            parser.OFPPacketOut(
                datapath=path,
                buffer_id=proto.OFP_NO_BUFFER,
                in_port=port,
                actions=[action],
                data=message.data,
            )
        )
