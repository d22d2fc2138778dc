# SPDX-License-Identifier: GPL-2.0-or-later
"""The constants of verbs as attributes of `e`, whichever version of pyverbs the guest has."""

import enum
import types

try:
    import pyverbs.enums as e
except ImportError:
    # From rdma-core 65 on, pyverbs has an enumeration for each type of constants. Some constants,
    # whose names begin with an underscore, have no type, so they are integers of the module.
    import pyverbs.libibverbs_enums as typed

    _values = {name: value for name, value in vars(typed).items() if isinstance(value, int)}
    for _type in vars(typed).values():
        if isinstance(_type, type) and issubclass(_type, enum.Enum):
            _values.update(_type.__members__)
    e = types.SimpleNamespace(**_values)

__all__ = ["e"]
