"""The one exception of the package."""


class Error(Exception):
    """What went wrong, in parts that a program can read.

    message: what is wrong, in one sentence.
    code: failed, unreadable, changed, stopped, out_of_memory, missing, invalid_input or invalid_setting.
    where: the operation, such as "loader".
    way_out: what can be done, or an empty string.
    setting: the setting that is wrong, if it is one.
    """

    def __init__(self, message: str, code: str = "failed", where: str = "", way_out: str = "", setting: str = "") -> None:
        super().__init__(message, code, where, way_out, setting)  # as pickling gives them back
        self.message = message
        self.code = code
        self.where = where
        self.way_out = way_out
        self.setting = setting

    def __str__(self) -> str:
        return (f"[{self.where}] " if self.where else "") + self.message + (f"; {self.way_out}" if self.way_out else "")
