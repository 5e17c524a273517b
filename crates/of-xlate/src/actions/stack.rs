//! `push` and `pop`.

use net_flow::Subfield;
use of_wire::Action;

use crate::ctx::Ctx;
use crate::recirc::StackItem;

impl Ctx<'_> {
    pub(crate) fn stack_push(&mut self, part: Subfield) {
        match self.flow.read_part(part) {
            Some(value) => self.stack.push(StackItem {
                value,
                bits: part.bits,
            }),
            None => self.fail_unsupported(&Action::StackPush(part)),
        }
    }

    pub(crate) fn stack_pop(&mut self, part: Subfield) {
        let Some(item) = self.stack.pop() else {
            self.warn("stack underflow".to_string());
            return;
        };
        self.write_result(part, item.value, &Action::StackPop(part));
    }
}
