WHY_NOT: str
VERSION: str
