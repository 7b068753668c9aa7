"""The resource types of the service, one module a part of Redfish."""
