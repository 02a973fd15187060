// The enforced limits of spec §8, and limits that the spec does not define. Names without a unit are counts.

const KiB = 1024
const MiB = 1024 * KiB
const GiB = 1024 * MiB

export const LIMITS = {
  jsonBodyBytes: 64 * KiB,
  /** Bodies of the routes of secrets, and of those of environments that carry files. */
  secretBodyBytes: 128 * KiB,
  environmentBodyBytes: 2 * MiB,
  gzipAboveBytes: KiB,
  idempotencyWindowMs: 24 * 60 * 60 * 1000,
  idempotencyKeyLength: 128,
  edgeConcurrency: 8,
  edgeRequestsPerSecond: 20,
  execTimeoutSeconds: { min: 1, max: 600, default: 30 },
  execEnvEntries: 32,
  /** Not in the spec: how long an attached command runs without a client. */
  disconnectTimeoutSeconds: { min: 1, max: 3600, default: 60 },
  /** Not in the spec: attached connections (commands and terminals) per API key and per box. */
  edgeAttachments: 64,
  /** Not in the spec: forwarded TCP connections per API key and per box. Browsers and connection pools open dozens. */
  edgeForwards: 256,
  /** Not in the spec: terminal sessions per box. */
  terminalSessions: 64,
  /** Not in the spec: the size of a desktop in pixels, its resolution in dots per inch, and its connected viewers. */
  desktop: {
    width: { min: 320, max: 3840, default: 1280 },
    height: { min: 200, max: 2160, default: 800 },
    dpi: { min: 48, max: 384, default: 96 },
    viewers: 8,
  },
  syncOutputBytes: MiB,
  /** Not in the spec: the processes of GET /exec. */
  listedProcesses: 1000,
  detachedTailBytes: { default: 16_384, max: MiB },
  streamsPerKey: 4,
  streamHeartbeatMs: 15_000,
  streamReconnectMs: 10 * 60_000,
  inlineFileBytes: MiB,
  transferBytes: GiB,
  /** Not in the spec: the lifetime of a download link. */
  downloadLinkSeconds: 60,
  /** Not in the spec: entries of a page of a directory. */
  filePage: { min: 1, max: 1000, default: 1000 },
  /** Not in the spec: the lifetime of a terminal ticket. */
  ticketSeconds: { min: 60, max: 3600, default: 600 },
  /** Not in the spec: open terminals per workspace. */
  openTerminals: 100,
  promptBytes: 512 * KiB,
  /** Not in the spec: every byte of a prompt may be a six-character escape; the other fields are small. */
  promptBodyBytes: 6 * 512 * KiB + 64 * KiB,
  /** The most runs in GET /prompts, and conversations in GET /prompts/conversations. */
  listedPrompts: 50,
  promptEventsPage: { min: 1, max: 1000, default: 200 },
  /** The size of the events of a page as JSON. A page has at least one event. */
  promptEventsPageBytes: MiB,
  promptStderrBytes: 4 * KiB,
  /** Not in the spec: the start of a prompt, in every response except GET /prompts/{runId}. */
  promptPreviewChars: 2048,
  ttlMinutes: { min: 5, max: 43_200 },
  deleteAfterMinutes: { min: 5, max: 525_600 },
  autoPauseMin: { min: 30, max: 10_080 },
  autoSnapshotHours: { min: 1, max: 168 },
  autoSnapshotKeep: { min: 1, max: 10, default: 3 },
  /** Moves in 24 hours. */
  movesPerBox: 1,
  movesPerWorkspace: 3,
  /** Not in the spec. */
  snapshotDescriptionChars: 500,
  boxEnvNames: 100,
  boxEnvBytes: 64 * KiB,
  boxNameLength: 32,
  /** Not in the spec. */
  boxLabels: 32,
  /** Not in the spec: the lifetime of a token for enrolling a machine. */
  enrollmentSeconds: 3600,
  /** Not in the spec: unused, unexpired tokens of a workspace. */
  openEnrollments: 200,
  boxEvents: 50,
  /** Not in the spec: open feeds. Each tab of a dashboard has one. */
  feeds: { perCredential: 50, perUser: 100, perWorkspace: 500, total: 2000 },
  /** Not in the spec: a message of a feed. An item may be longer than these characters. */
  feedMessage: { items: 200, chars: 256 * KiB },
  /** Not in the spec, which has no pages of boxes. */
  boxPage: { min: 1, max: 200 },
  /** Not in the spec, apart from the default. */
  auditRetentionDays: { min: 1, max: 3650, default: 90 },
  /** Not in the spec. */
  memberBoxLimit: { min: 1, max: 10_000 },
  /** Not in the spec. */
  memberSpendCapUsd: { max: 1_000_000 },
  /** Live links of a workspace that need no membership. */
  shareLinks: 10,
  shareLinkSeconds: { min: 300, max: 2_592_000, default: 604_800 },
  secretNameChars: 128,
  secretValueBytes: 16 * KiB,
  secretHosts: 32,
  secretUsageRows: 1000,
  /** Not in the spec: limits of secrets, per workspace, per secret and per box. */
  secrets: 500,
  secretDescriptionChars: 500,
  secretGrants: 500,
  boxMounts: 100,
  /** Not in the spec: limits of environments, per workspace and per environment. */
  environments: 100,
  /** Patterns of the policy allowedImages. */
  allowedImages: 100,
  environmentDescriptionChars: 500,
  environmentFiles: 64,
  environmentFilesBytes: MiB,
  environmentRepos: 32,
  /** Not in the spec: versions of an environment that are kept though no box uses them. */
  environmentVersions: 50,
  /** Entries of the ledger of a workspace. */
  entryPage: { min: 1, max: 200, default: 50 },
  /** Not in the spec: the AWS roles of a workspace. */
  awsRoles: 10,
  awsRoleArnChars: 640,
  /** The lifetime of a link that connects an AWS role. */
  awsConnectSeconds: 3600,
  commandPage: { min: 1, max: 200, default: 50 },
  commandChars: 8192,
  /** Retained bytes per stream in the command history, and the largest page of them. */
  commandOutputBytes: MiB,
  /** Not in the spec: limits of members and workspaces. */
  memberNameChars: 64,
  workspaceNameChars: 64,
  /** Invitations of a workspace in 24 hours: an invitation sends a mail to any address. */
  invitations: 100,
  /** Workspaces in which a person is an owner. */
  ownedWorkspaces: 20,
  auditPage: { min: 1, max: 1000, default: 100 },
  auditCsvRows: 50_000,
  teamEvents: 50,
  /** Not in the spec: reports of clients and downloads. */
  auditEventsPerSecond: { perCredential: 20, perUser: 100 },
  auditReport: { keys: 16, keyChars: 40, stringChars: 512 },
  /** Not in the spec: limits of API keys. */
  keyNameChars: 64,
  keyExpiryDays: { min: 1, max: 3650 },
  keyBoxes: 100,
  /** Keys of a user that are not revoked, and those with no user together. */
  keysPerUser: 500,
  keyPage: { min: 1, max: 200 },
  portSharePage: { min: 1, max: 200 },
  /** Not in the spec: the workspaces of a page for operators. */
  workspacePage: { min: 1, max: 200, default: 50 },
  /** Not in the spec: a machine key expires this long after its last use. */
  machineKeyDays: 90,
  /** Not in the spec: deliveries of the audit log to an HTTPS endpoint. */
  auditSink: { urlChars: 2048, batchEvents: 500, timeoutSeconds: 15, maxRetrySeconds: 3600 },
} as const

/** Not in the spec: bytes of detached processes' output on a box's disk. */
export const LOG_LIMITS = {
  /** The log of one stream. The minimum is eight 4 KiB blocks, because the head of a full log is discarded in steps of an eighth. */
  stream: { default: 64 * MiB, min: 32 * KiB },
  /** The logs of all exited processes together. */
  exitedProcesses: { default: GiB },
} as const

/** Not in the spec: per box. Operators can change them; see docs/configuration.md. */
export const PROMPT_LIMITS = {
  /** Runs in progress. */
  runs: { min: 1, max: 64, default: 4 },
  /** Stored conversations. A new one replaces the least recently active one that has no run and no queued prompt. */
  conversations: { min: 1, max: 10_000, default: 200 },
  queued: { min: 1, max: 1000, default: 100 },
  /** Time limit of a run. */
  minutes: { min: 1, max: 10_080, default: 360 },
} as const

/** Not in the spec: from this CPU usage on a box is active. Background work of idle programs uses less. */
export const DEFAULT_IDLE_CPU_PERCENT = 5

/** Not in the spec: limits of the connections of clients and agents. */
export const HTTP_LIMITS = {
  /** Half of them are for connections with a credential. */
  connections: { default: 4096 },
  /** Connections of a client address on which no request with a credential was sent. */
  addressConnections: { default: 256 },
  /** Time for the request line and headers. Bodies have their own limits. */
  headersSeconds: { default: 20 },
  /** A connection without a request is closed after this time. */
  idleSeconds: { default: 75 },
  /** How much of a request body is read after a response that was sent before its end. Enough for every body that a route accepts. */
  linger: { bytes: GiB, idleMs: 5_000, totalMs: 30_000 },
} as const

/** Not in the spec: limits of the server of shared ports. Requests above the numbers get 503. */
export const SHARE_LIMITS = {
  /** Connections to a port that are used for HTTP at the same time. Further requests wait. */
  portConnections: 128,
  /** Connections to all ports of a box, including WebSockets. */
  boxConnections: 512,
  /** Requests to a port at the same time, including those that wait for a connection. */
  portRequests: 512,
  /** Shorter than the time after which common servers close unused connections, such as 2 s (gunicorn) and 5 s (Node). */
  idleMs: 1_500,
  /** A request body that stops for this time, or at the latest for twice this time, gets 408. Common proxies wait for 60 s. */
  bodyIdleMs: 30_000,
} as const

/** Not in the spec: limits of the tunnel, and of the memory that one box can occupy in the coordinator. */
export const TUNNEL_LIMITS = {
  /** The largest JSON body of a request to an agent: a file of 1 MiB, every byte a six-byte escape, plus other fields. */
  requestBytes: 8 * MiB,
  /** The largest body of a message. Larger ones are sent in chunks of this size. */
  messageBytes: 64 * KiB,
  /** Requests of one tunnel that have no complete response yet. Further ones wait. Far above `edgeConcurrency`. */
  openCalls: 256,
  /** The largest line of the reports stream. */
  reportBytes: 256 * KiB,
} as const

/** An event as JSON is at most this long. The agent omits `raw` and `tool.input` and truncates `text` of a longer one. */
export const MAX_PROMPT_EVENT_BYTES = 3 * 1024 * 1024
