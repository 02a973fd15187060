// The state in the memory of a coordinator, and why several coordinators of one database may each have their own.
// `npm run check` refuses state that is not listed (find-process-state.ts).

/**
 * - O: the coordinator with the agent of the box is the only one that uses it: requests about the box are forwarded there
 * - N: other coordinators change it by a notification (db/notifications.ts)
 * - P: the truth is in the database
 * - L: one coordinator at a time has the lease of the row, or the lock of the data directory (a host)
 * - B: counts for each coordinator, within the bound that is given. docs/replicas.md has those that clients notice
 * - ok: of a connection, a request or the program; a copy that is not stale; or what adds up
 */
export type StateLetter = 'O' | 'N' | 'P' | 'L' | 'B' | 'ok'

/** The file, relative to `coordinator/`, and the name of the variable or field → why it is right. */
export const PROCESS_STATE: Readonly<Record<StateLetter, Readonly<Record<string, string>>>> = {
  O: {
    'agents/tunnel/accept.ts proofs':
      'of upgrades in progress; the box is claimed in the database before its agent is accepted',
    'agents/tunnel/agent-connections.ts reportReaders': 'of the tunnels of this coordinator',
    'agents/tunnel/box-limits.ts messages': 'of the tunnel of the box',
    'agents/tunnel/box-limits.ts reportBytes': 'of the tunnel of the box',
    'agents/tunnel/box-limits.ts streamFrames': 'of the streams of the owner',
    'agents/tunnel/calls.ts #open': 'of one tunnel',
    'agents/tunnel/calls.ts #waiting': 'of one tunnel',
    'agents/tunnel/dial-backs.ts open': 'the connections of the ids that this coordinator issued',
    'agents/tunnel/dial-backs.ts pending':
      'the id names the coordinator that issued it, and the others forward the connection there',
    'agents/tunnel/metrics.ts connectedBoxIds': 'the sum of all coordinators counts each agent once',
    'agents/tunnel/open-sessions.ts #sessions':
      'the tunnels of this coordinator, which it closes when it stops or loses its lease',
    'agents/tunnel/registry.ts held':
      'the tunnels of this coordinator that a restart or a move of the agent holds',
    'agents/tunnel/registry.ts sessions':
      'the tunnels of this coordinator; the table tunnels says which one has the tunnel of a box',
    'agents/tunnel/registry.ts waiters':
      'a request that waits for an agent is served where it connects, or is forwarded there',
    'agents/upgrades/agent-upgrades.ts #failures':
      'the agents of this coordinator; another one that gets an agent begins with the first delay',
    'agents/upgrades/agent-upgrades.ts #outdated': 'the agents of this coordinator',
    'agents/upgrades/agent-upgrades.ts #refused':
      'the agents of this coordinator; another one that gets an agent asks it once more',
    'agents/upgrades/agent-upgrades.ts #restarted':
      'the agents of this coordinator; another one that gets an agent restarts it once more',
    'agents/upgrades/agent-upgrades.ts #retries': 'the agents of this coordinator',
    'agents/upgrades/agent-upgrades.ts #waiting': 'restarts of the agents of this coordinator',
    'boxes/lifecycle/heartbeats.ts latest':
      'the owner gets the heartbeats and answers requests about the box; lists read what the database has, up to 5 s old',
    'boxes/lifecycle/heartbeats.ts unwrittenIds': 'the owner writes what it has received',
    'boxes/lifecycle/heartbeats.ts unwrittenPorts': 'the owner writes what it has received',
    'boxes/lifecycle/report-queue.ts queue': 'the reports of the tunnels of this coordinator',
    'boxes/schedules/pause-gate.ts deciding':
      'the schedule of a connected box is evaluated by the owner, which serves the requests to it',
    'boxes/schedules/pause-gate.ts version': 'counts the decisions about the boxes of this coordinator',
    'boxes/variable-sender.ts connected': 'the agents of this coordinator',
    'boxes/variable-sender.ts sending': 'the agents of this coordinator',
    'boxes/variable-sender.ts sent':
      'the agents of this coordinator; a mount at another one does not wait until the agent has the variables',
    'boxes/variable-sender.ts tests': 'the agents of this coordinator, where GET of the box is answered',
    'edge/attachment-counts.ts byBox':
      'the connections to the boxes of this coordinator; the team status adds those of all',
    'edge/limits.ts connectionsByBox': 'connections to a box are served by its owner',
    'edge/limits.ts requestsByBox': 'requests to a box are served by its owner',
    'edge/limits.ts resumableByBox': 'requests to a box are served by its owner',
    'edge/secret-broker/broker-server.ts #byStream': 'of open connections',
    'edge/shared-ports/open-shares.ts #shares':
      'requests to a shared port are served by the owner of the box; a link that ends is a notification',
    'edge/shared-ports/open-shares.ts #streams': 'of open requests',
    'edge/shared-ports/proxy/box-connections.ts #countByBox':
      'the connections of the owner to the ports of a box',
    'edge/shared-ports/proxy/box-connections.ts #ports': 'the connections of the owner to the ports of a box',
    'edge/shared-ports/proxy/port-agent.ts #idleTimers': 'of open connections',
    'edge/shared-ports/proxy/port-agent.ts #normalizers': 'of open connections',
    'environments/delivery/deliver-files.ts last':
      'files are written by the coordinator that runs the job of the box, or that has its agent',
    'environments/delivery/module.ts connected': 'the agents of this coordinator',
    'environments/delivery/module.ts starting': 'the boxes whose job this coordinator runs',
    'environments/delivery/sync-repos.ts #running': 'the agents of this coordinator',
    'environments/delivery/sync-repos.ts #tasks': 'the agents of this coordinator',
    'federation/aws/credential-sender.ts #connected': 'the agents of this coordinator',
    'federation/aws/credential-sender.ts #last': 'the agents of this coordinator',
    'federation/aws/credential-sender.ts #queue': 'the agents of this coordinator',
    'history/commands/pending-records.ts boxes':
      'the owner receives the records and answers requests for the history of the box',
    'history/commands/pending-records.ts waiters':
      'the owner receives the records and answers requests for the history of the box',
    'history/metrics/ingest.ts otherHours': 'the reports of the tunnels of this coordinator',
    'history/process-snapshots/ingest.ts rewrittenBytes': 'the reports of the tunnels of this coordinator',
  },
  N: {
    'agents/tunnel/owners/owners.ts remote':
      'claims and releases of other coordinators are notifications; read again after a gap',
    'agents/tunnel/owners/remote-tunnels.ts tunnels': 'an object for each entry of owners.ts',
    'audit/export/deliveries.ts workspaceIds': 'changed endpoints are notifications',
    'edge/secret-broker/broker-connections.ts #byBox':
      'hosts that the box may not use any more are notifications; the limits of requests in flight count for each replica',
    'federation/issuer/signing-keys.ts active': 'a rotation is a notification; loaded again after a gap',
    'feed/change-queue.ts #changes': 'the changed rows of all coordinators are notifications',
    'feed/feeds.ts #connections':
      'the changed rows of all coordinators are notifications; feeds end after a gap',
    'http/open-requests.ts byWorkspace':
      'changed rights are notifications; all open requests are checked after a gap',
    'http/open-requests.ts changeCount': 'counts the notifications of changed rights',
    'jobs/due-timer.ts earliest': 'due times that other coordinators write are notifications',
    'agents/upgrades/fleet-targets.ts seen':
      'the rows of the coordinators, which are read with each renewal of the lease and before a restart of an agent',
    'replicas/fleet.ts builds': 'what this coordinator has written into its row',
    'replicas/peers.ts others': 'forgotten when the coordinator has stopped; another start has another id',
    'replicas/replica.ts others': 'read with each renewal of the lease, to find those that have stopped',
  },
  P: {
    'agents/tunnel/owners/owners.ts counts': 'the claims of this coordinator that are in progress',
    'agents/tunnel/owners/owners.ts own':
      'the generations that this coordinator has claimed in the table tunnels',
    'agents/tunnel/registry.ts generation':
      'used by the only coordinator of a database; others claim a generation in the table tunnels',
    'boxes/lifecycle/box-counts.ts counts':
      'counted in the database once a minute; the metric has the label source="database"',
    'federation/issuer/signing-keys.ts last':
      'orders the changes of this coordinator; a lock in the database orders those of all',
    'http/idempotency.ts running':
      'avoids a query; the row of the key names the coordinator that runs the request',
    'identity/sessions/codes.ts oneAtATime':
      'orders the requests at this coordinator; a lock in the database orders those at all',
  },
  L: {
    'audit/export/deliveries.ts slow': 'the coordinator with the lease of the endpoint delivers',
    'audit/export/workspace-runs.ts #active': 'the coordinator with the lease of the endpoint delivers',
    'audit/export/workspace-runs.ts #retries': 'the coordinator with the lease of the endpoint delivers',
    'boxes/lifecycle/disconnect-monitor.ts watches':
      'a watch ends when the agent connects to any coordinator; the job that it creates has a lease',
    'boxes/lifecycle/disk-limits.ts #baseline': 'of the disks of the own host',
    'boxes/lifecycle/disk-limits.ts #suspendedSizes': 'of the disks of the own host',
    'boxes/lifecycle/host-monitor.ts timers':
      'each coordinator checks the boxes of stopped hosts; the first one changes the row',
    'jobs/failures.ts #unavailable':
      'of the jobs whose lease this coordinator has; another one begins with the first delay',
    'jobs/job-runner.ts active': 'each job and schedule is claimed in its row',
    'providers/docker/archives/archives.ts #incomplete':
      'the images belong to the host, whose data directory one coordinator locks',
    'providers/docker/helper-container.ts inUse':
      'the containers belong to the host, whose data directory one coordinator locks',
    'providers/docker/helper-container.ts withRemaining':
      'the containers belong to the host, whose data directory one coordinator locks',
    'providers/incus/agent-volume.ts #volumes':
      'the volumes belong to the host, whose data directory one coordinator locks',
    'providers/incus/instances.ts #creating':
      'the instances belong to the host, whose data directory one coordinator locks',
    'providers/incus/instances.ts #moving':
      'the instances belong to the host, whose data directory one coordinator locks',
    'providers/incus/instances.ts #removals':
      'the instances belong to the host, whose data directory one coordinator locks',
    'providers/incus/operations.ts #orphans': 'of the instances of the host',
    'providers/incus/operations.ts #recent': 'of the instances of the host; at most 1,000',
    'providers/incus/operations.ts #waiters': 'of the instances of the host',
    'providers/local/machine-pauses.ts #pausedIds': 'of the machines of the host',
    'providers/local/machines.ts #captures': 'of the machines of the host',
    'providers/local/reclaim.ts runs': 'of the machines of the host',
    'providers/parts/archives/workspaces.ts workspaces': 'of the archives in the data directory',
    'providers/parts/box-queue.ts #lastCalls':
      'the calls for a box are made by the coordinator with the lease of its job',
    'warm-machines/pool.ts regions': 'the machines of the host',
    'warm-machines/pool.ts size': 'the machines of the host',
  },
  B: {
    'agents/tunnel/box-limits.ts attempts':
      '60 attempts to connect at once, then one per second, for each replica',
    'agents/tunnel/secret-sockets.ts attempts':
      '1,000 attempts at once, then 50 per second, for each replica',
    'agents/tunnel/secret-sockets.ts openByBox': '512 connections of a box at each replica',
    'agents/upgrades/agent-upgrades.ts #limitInstallations': '8 installations at a time for each replica',
    'audit/denials.ts recordedAt': 'each kind of refusal is recorded once a minute by each replica',
    'audit/event-limiter.ts byCredential': 'the limit per second of a credential counts for each replica',
    'audit/event-limiter.ts byUser': 'the limit per second of a user counts for each replica',
    'audit/export/deliveries.ts limits':
      'the concurrent deliveries of each replica; those of an endpoint run one at a time',
    'audit/record-connect.ts events': 'a forwarded port is recorded once an hour by each replica',
    'boxes/lifecycle/machine-limits.ts queues':
      'the concurrent calls to an engine count for each host that uses it',
    'boxes/snapshots/reconciler.ts captures': '4 captures at a time for each replica',
    'download-links/service.ts newLinks': '30 new links at once, then one per second, for each replica',
    'edge/attach.ts messages': 'the messages of attached connections, at the coordinator that relays them',
    'edge/connect-to-port.ts messages':
      'the messages of forwarded connections, at the coordinator that relays them',
    'edge/limits.ts forwardRate': 'of a key: for each replica; of a box: exact, at its owner',
    'edge/limits.ts requestRate': 'of a key: for each replica; of a box: exact, at its owner',
    'edge/limits.ts slots':
      'of a key, user or workspace, with open terminals: for each replica that owns boxes; of a box: exact, at its owner',
    'edge/relay-connection.ts messages':
      'the messages of forwarded connections, at the coordinator that relays them',
    'edge/secret-broker/broker-server.ts #messages':
      'the messages of connections to hosts of secrets, where they are open',
    'edge/secret-broker/request-limits.ts rates':
      '300 requests of a box at once, then 100 per second, at each replica to which the box has connections',
    'edge/secret-broker/value-cache.ts #bytesByWorkspace': 'the memory of each replica',
    'edge/secret-broker/value-cache.ts #creation': 'the memory of each replica',
    'federation/aws/role-links.ts callbacks': '40 callbacks at once, then one in 5 s, for each replica',
    'federation/aws/roles.ts verifications': '20 verifications at once, then one in 2 s, for each replica',
    'feed/feeds.ts #slots': 'the open feeds of a credential, user and workspace count for each replica',
    'http/connection-shares.ts #slots': 'the shares of the connections of each replica',
    'http/connections.ts #bySubject': 'the connections of each replica',
    'http/connections.ts #incomplete': 'the connections of each replica',
    'http/connections.ts #open': 'the connections of each replica',
    'http/connections.ts #served': 'the connections of each replica',
    'identity/mail/mailer.ts pending': 'the mails that this coordinator sends',
    'identity/mail/mailer.ts queue': '2 connections to the mail server for each replica',
    'identity/sessions/rate-limits.ts buckets': 'the attempts of an address count for each replica',
    'identity/sessions/sign-in.ts recentRejections':
      'a rejected sign-in is recorded once a minute by each replica',
    'images/downloads.ts running': 'a workspace downloads one image at a time at each replica',
    'port-shares/viewers/service.ts newCodes': '30 codes at once, then one in 2 s, for each replica',
    'providers/docker/networks.ts #oneAtATime':
      'of two hosts that choose the same subnet, the engine refuses one, which uses the next subnet',
    'providers/parts/archives/task-queue.ts #limit': 'the processors of the machine',
    'providers/parts/archives/task-queue.ts #running': 'the tasks of this coordinator',
    'providers/shared-downloads.ts #running': 'each host that uses an engine requests a download once',
  },
  ok: {
    'agents/bundles/agent-bundles.ts bundles': 'the files of the program',
    'agents/bundles/agent-bundles.ts limit': 'the files of the program',
    'agents/tunnel/parse-reports.ts logged': 'kinds of log lines',
    'audit/denials.ts writes': 'unfinished writes, awaited by close()',
    'base/background-tasks.ts running': 'unfinished tasks, awaited by close()',
    'base/cached-bundle.ts limit': 'builds of this process',
    'base/fair-queue.ts runningByGroup': 'the queues are listed where they are created',
    'base/fair-queue.ts waiting': 'the queues are listed where they are created',
    'base/log/box-warnings.ts lastLines': 'limits log lines',
    'base/log/line-limiter.ts entries': 'limits log lines',
    'base/rate-limiter.ts limiter': 'the limiters are listed where they are created',
    'base/sealing/master-keyring.ts keysById':
      'the master keys are the same for all coordinators, which a start checks',
    'base/slots.ts #uses': 'the slots are listed where they are created',
    'base/token-buckets.ts buckets': 'the buckets are listed where they are created',
    'boxes/lifecycle/authenticate-agent.ts loadRow': 'collects concurrent queries',
    'db/immediate-queries.ts byAdapter': 'of the connection to SQLite',
    'db/notification-hub.ts hubs': 'the subscribers of this process',
    'db/notifications.ts names': 'the topics of the program',
    'db/notifications.ts outgoing': 'of transactions in progress',
    'db/row-changes.ts observedRows': 'of transactions in progress',
    'db/row-changes.ts observersByAdapter': 'tests observe the rows of a database',
    'db/sqlite-driver.ts #statements': 'prepared statements of a connection',
    'db/transaction.ts callbacksByTransaction': 'of transactions in progress',
    'edge/response-parser.ts pending': 'calls of a worker of this process',
    'edge/secret-broker/metrics.ts #counts': 'counters for metrics, whose sum is right',
    'edge/secret-broker/scrub/matcher.ts #branches': 'constant after the construction',
    'edge/secret-broker/scrub/needles.ts needles': 'local to a call',
    'edge/secret-broker/substitution.ts #secrets': 'of one request',
    'edge/secret-broker/substitution.ts secretIds': 'of one request',
    'edge/secret-broker/tls-end.ts contexts': 'a cache with the life of its certificate',
    'edge/secret-broker/upstream-agents.ts #pools': 'idle connections to hosts',
    'edge/secret-broker/upstream-agents.ts #unused': 'idle connections to hosts',
    'edge/secret-broker/value-cache.ts #entries': 'by the version of the secret, so that no entry is stale',
    'history/commands/prune.ts growth':
      'prunes early when a box has written much; the hourly pruner does the rest',
    'history/metrics/stored-chunks.ts logged': 'kinds of log lines',
    'http/forwarded-requests.ts forwarded': 'of requests in progress',
    'http/method-lookup.ts byPath': 'the routes of the program',
    'http/observe-requests.ts observedByRequest': 'of requests in progress',
    'http/openapi-responses.ts entries': 'local to a call',
    'http/openapi.ts schemaNumbers': 'the schemas of the program',
    'http/openapi.ts undescribed': 'local to a call',
    'http/tls-listener.ts sockets': 'handshakes in progress',
    'http/websocket.ts upgrades': 'of requests in progress',
    'identity/keys/key-uses.ts unwritten': 'written once a minute, and adds up; a kill loses the last minute',
    'identity/sessions/find-session.ts storing': 'saves writes of the same use',
    'jobs/scheduler.ts elsewhere': 'the features of the program',
    'jobs/scheduler.ts failures': 'limits log lines',
    'jobs/scheduler.ts handlers': 'the features of the program',
    'jobs/scheduler.ts pruners': 'the features of the program',
    'machines/machine-agents.ts loadTokenHash': 'collects concurrent queries',
    'mcp/message-server.ts contexts': 'of requests in progress',
    'port-shares/openings.ts unwritten': 'written every 10 s, and adds up; a kill loses the last interval',
    'port-shares/share-base.ts otherNames': 'the URLs of the deployment',
    'providers/docker/images/pull-progress.ts #layers': 'of one download',
    'providers/docker/images/pull-progress.ts #transferred': 'of one download',
    'providers/incus/protections.ts #logged': 'limits log lines',
    'providers/incus/protections.ts #withoutFilters':
      'facts about the members of a cluster, found by each coordinator',
    'providers/parts/archives/chunk-spool.ts #chunks': 'of one archive',
    'providers/parts/archives/worker.ts requests': 'of one process of the archive store',
    'replicas/connection-watch.ts #open': 'of requests in progress',
    'replicas/peers.ts operations': 'the calls of the program',
    'secrets/authorities.ts leaves':
      'a cache: leaves of different coordinators have one authority, which is in the database',
    'secrets/uses.ts unwritten': 'written each second, and adds up; a kill loses the last second',
    'server/app.ts boxNames': 'the names in log lines',
    'server/backup/backup-socket.ts running': 'the clients of the backup socket of this data directory',
    'server/telemetry/prometheus/http.ts peers': 'open connections, whose sum over all coordinators is right',
  },
}
