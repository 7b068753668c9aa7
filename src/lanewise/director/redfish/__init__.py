"""The Redfish service of a director: a dispatcher over typed resources, on Starlette and uvicorn."""
