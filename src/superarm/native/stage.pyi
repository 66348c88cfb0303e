# Made by buildtools/stubs.py from stage.pyx.
from typing import Any
from numpy.typing import NDArray

LINE: int
MANY: int
class Stage:
    arrays: dict[str, Any]
    stages: dict[str, Any]
    def state(self) -> dict[str, NDArray[Any]]: ...
    def restore(self, state: Any) -> None: ...
def aligned(shape: Any, dtype: Any, value: Any = ...) -> NDArray[Any]: ...
