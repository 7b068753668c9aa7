"""Why a row is not what it should be: one function a cause."""
