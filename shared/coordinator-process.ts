// What the coordinator's process reports to the `box` command on the same machine.

/** The log of a coordinator that `box up` has started, in the data directory. */
export const LOG_FILE = 'coordinator.log'

/** Two lines. */
export const describeSignInLink = (link: string): string =>
  `Dashboard: ${link}\nThis link signs you in as the owner, once, within 15 minutes. \`box open\` makes another.`

/** The content of coordinator.json in the data directory, as JSON. The file exists while a coordinator runs. */
export type CoordinatorRecord = {
  /** The origin at which the coordinator listens. */
  url: string
  pid: number
  /** The time of the start identifies the process together with its pid, which is reused. Field 22 of /proc/PID/stat, in clock ticks since boot. */
  startTicks: number
  bootId: string
  version: string
}

/** The message on the IPC channel of a coordinator that was started with one. It is sent once, when requests are accepted. */
export type ReadyMessage = {
  url: string
  /** The isolation of the boxes, and how many machines wait for one, in sentences. */
  machines: string
  /** The engines that boxes can use, with the line that adds each of them; empty: none was found, or there was no time. */
  engines: string
  /** The URL of the dashboard, which signs in the owner once; null: there is none. */
  signInLink: string | null
  /** The arguments of a `box` command to try, such as `exec fig -- uname -a`. */
  suggestedCommand: string
}

/** The output of coordinator/server/suspend-boxes.ts, as one line of JSON. Names of boxes. */
export type SuspendedBoxes = {
  suspended: string[]
  /** Their machines were running and are stopped, in a create, suspend or deletion that the next start continues. */
  stopped: string[]
  /** Their machines may still run. */
  failed: string[]
  /** An engine runs them, which only a coordinator can use: they continue to run. */
  left: string[]
}

/** One of several coordinators of a database, in the output of coordinator/server/list-replicas.ts. */
export type ReplicaStatus = {
  id: string
  /** Its host name and URL. */
  name: string
  version: string
  /** The id of its data directory; null: unknown. */
  host: string | null
  /** The number of connected agents, when it last extended its lease; null: it does not accept agents. */
  tunnels: number | null
  /** The time since it has extended its lease. */
  leaseAgeMs: number
  /** Whether the lease is valid. A coordinator that was killed is listed for a day. */
  isAlive: boolean
}

/** An engine that runs on this machine, or that is configured. */
export type EngineDiagnosis = {
  kind: 'docker' | 'podman' | 'incus'
  /** warn: a region has the engine, and it cannot be used. */
  status: 'ok' | 'warn'
  /** What was found, without a full stop. */
  message: string
  /** What to do, or what can be done, as a sentence; null when nothing is to be done. */
  advice: string | null
  /** The command that starts the coordinator with the engine in a region of its own; null: there is none. */
  startLine: string | null
}

/** The output of coordinator/server/diagnose.ts, as one line of JSON: what boxes on this machine can use. */
export type MachineDiagnosis = {
  /** null: no isolation level works, and `levelAdvice` says why. */
  level: string | null
  /** How to get a stronger isolation level; null: the level is the strongest. */
  levelAdvice: string | null
  network: 'own' | 'host'
  /** How to give each box its own network; null: boxes have one, or the configuration selects the network of the host. */
  networkAdvice: string | null
  /** The limits that cgroups enforce. */
  limits: string[]
  /** Where a coordinator would listen. */
  address: string
  /** The origin at which programs on this machine would reach it. */
  url: string
  /** Why a coordinator cannot listen there; null: it can. */
  addressProblem: string | null
  /** The configured Postgres database, and why a coordinator cannot use it; null: none is configured. */
  database: { problem: string | null } | null
  engines: EngineDiagnosis[]
  /** Whether the file system of the data directory clones files without copying their content; null: not known. */
  hasReflinks: boolean | null
  /** How many machines wait for a box, and why, as a sentence; null: as configured. */
  warmMachines: string | null
  /** The command that starts the coordinator with Docker in a region of its own; null: no region is free. */
  dockerStartLine: string | null
}
