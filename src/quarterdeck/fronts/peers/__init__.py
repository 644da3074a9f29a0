"""The way between hubs that share a journal: commands, requests to machines, and live text.

`PeerClient` calls other hubs, `PeerEndpoint` is what they call, `LiveFeed` brings their live text,
and `Forward` passes on what an agent asks the wrong hub.
"""

from quarterdeck.fronts.peers.client import PeerClient
from quarterdeck.fronts.peers.endpoint import PREFIX, PeerEndpoint
from quarterdeck.fronts.peers.forward import Forward
from quarterdeck.fronts.peers.live import LiveFeed
from quarterdeck.fronts.peers.seal import Sealer, shared_secret

__all__ = ["PREFIX", "Forward", "LiveFeed", "PeerClient", "PeerEndpoint", "Sealer", "shared_secret"]
