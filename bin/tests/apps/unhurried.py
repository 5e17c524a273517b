"""os-ken's switch tester without the pause that it makes between two cases.

Its pause gives switches time to forget the flows of the case before; a switch whose barrier
waits for that needs none.
"""

from os_ken.tests.switch import tester


class Unhurried(tester.OfTester):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.interval = 0
