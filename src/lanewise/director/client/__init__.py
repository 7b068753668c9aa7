"""A client of Redfish services: sessions, ETags, tasks, events; and compositions over any service that has them."""
