// A feature of the coordinator, as the list of modules needs it: what it adds to the server, and how it starts and stops.
import type { Logger } from 'pino'
import type { Clock } from '../../shared/clock.ts'
import type { Db } from '../db/open.ts'
import type { Tables } from '../db/schema.ts'
import type { Trx } from '../db/transaction.ts'
import type { Actor } from './actor.ts'
import type { HostHandler } from './host-handler.ts'
import type { PublicRoute } from './public-routes.ts'
import type { Route } from './route.ts'

/** What most modules need. A module is created by a function of the context: the base and the services of earlier modules. */
export type ModuleBase = { log: Logger; clock: Clock; db: Db }

/** What some modules need of all others. The answers are complete when all modules have been added. */
export type ModuleRegistry = {
  readonly all: readonly Module[]
  /** Deletes what the modules store for a box. */
  deleteOfBox(trx: Trx, boxId: string): Promise<void>
  /** Removes what the modules store for a box and a restricted box may not have. */
  restrictBox(trx: Trx, boxId: string): Promise<void>
  /** See Module.removeMember. */
  removeMember(trx: Trx, member: RemovedMember): Promise<void>
  /** See Module.prepareBox. */
  prepareBox(boxId: string, signal: AbortSignal): Promise<void>
  listWorkspaceTables(): readonly WorkspaceTable[]
  listSealedColumns(): readonly SealedColumn[]
}

/**
 * Evaluates a due schedule, and moves or deletes its row. Another evaluation may have done so meanwhile.
 * @param signal aborts when the coordinator stops
 * @returns when the schedule is evaluated next, in milliseconds since the epoch; undefined: the schedule has been deleted,
 *   or the signal has aborted
 */
export type ScheduleHandler = (targetId: string, signal: AbortSignal) => Promise<number | undefined>

/** Deletes what has expired. The signal aborts between two transactions. */
export type Pruner = (signal: AbortSignal) => Promise<unknown>

export type Schedules = {
  /** The handlers by the kind of their schedules. */
  handlers?: Readonly<Record<string, ScheduleHandler>>
  /**
   * Whether another coordinator that uses the database evaluates the schedules of the target. Default: any of them does, one at a
   * time.
   */
  isElsewhere?(targetId: string): boolean
  /** The pruners by the names of their schedules. Each pruner runs every hour. */
  pruners?: Readonly<Record<string, Pruner>>
  /** Runs before due schedules are listed, and at least once a minute. A failure is retried like a failed query. */
  beforeList?(now: number): Promise<void>
}

/** A table with a column workspace_id, whose rows are deleted with their workspace. */
export type WorkspaceTable = {
  table: keyof Tables
  /** The column that selects a batch of rows; null: a workspace has few rows. */
  key: string | null
  /** The rows are deleted first, so that they are not accepted any more. */
  isCredential?: boolean
}

/**
 * A column with encrypted values (base/sealing/). Its table has the columns workspace_id and key_id, the id of the master key. A row
 * whose key_id is null is not encrypted.
 */
export type SealedColumn = {
  /** The table has no column workspace_id: its rows belong to the deployment. The workspaceId of their SealContext is ''. */
  isOfDeployment?: boolean
  table: keyof Tables
  /** The primary key, which is the rowId of the SealContext. */
  id: string
  value: string
}

/** A value that is read when the metrics are read. Names and units follow the conventions of Prometheus. */
export type Metric = {
  type: 'gauge' | 'counter'
  name: string
  help: string
  /** The label of `collect`. Absent: one value without a label. */
  label?: string
  /** Counts rows of the database: all replicas have the same value, and a sum of theirs would be wrong. Adds the label `source`. */
  isOfDatabase?: true
  /** Returns the metric by the value of its label, which is '' without a label. null: the metric could not be read. */
  collect(): Promise<ReadonlyMap<string, number> | null> | ReadonlyMap<string, number>
}

/** The actor removes the user from its workspace. */
export type RemovedMember = { actor: Actor; userId: string }

/** `name` completes "failed to …" in the log. */
export type CloseStep = {
  name: string
  run(): unknown
  /** Default: 5 s. */
  timeoutMs?: number
}

/**
 * Modules are created and started in the order of the list, and closed in the reverse order. All fields are optional: a module
 * has those that its feature needs.
 */
export type Module = {
  /** What later modules, the server and tests use, by its name in the context. */
  readonly services?: object
  /** Routes of the control plane. withTag() sets their group in the API reference. */
  readonly routes?: readonly Route[]
  readonly edgeRoutes?: readonly Route[]
  /** Routes under ENROLL_PATH, which agents use before they have an identity. */
  readonly agentRoutes?: readonly Route[]
  /** Routes outside the API that need no credential. */
  readonly publicRoutes?: readonly PublicRoute[]
  /** Serves the requests with other host names than that of the API. */
  readonly hostHandler?: HostHandler
  readonly schedules?: Schedules
  /** A row of these tables refers to rows of the same or earlier modules only. */
  readonly workspaceTables?: readonly WorkspaceTable[]
  readonly sealedColumns?: readonly SealedColumn[]
  /** Deletes the rows of a box that is being deleted. */
  readonly deleteOfBox?: (trx: Trx, boxId: string) => Promise<unknown>
  /** Removes what a restricted box may not have. The caller has locked the box, and sets its column. */
  readonly restrictBox?: (trx: Trx, boxId: string) => Promise<unknown>
  /** Runs when a member is removed, before the workspace is locked: it may lock boxes. A refused removal is rolled back. */
  readonly removeMember?: (trx: Trx, member: RemovedMember) => Promise<unknown>
  /**
   * Runs when the agent has connected after a start of the box, before the box is running, at the coordinator with its tunnel. An
   * error repeats the step, so what a retry cannot mend must not be thrown.
   */
  readonly prepareBox?: (boxId: string, signal: AbortSignal) => Promise<unknown>
  readonly metrics?: readonly Metric[]
  /** Runs before the coordinator accepts requests. */
  readonly prepare?: () => Promise<void>
  /** Runs when the coordinator accepts requests. */
  readonly start?: () => Promise<void>
  /**
   * Runs before `beginStop` when other coordinators of the database can take over: leaves to them what this one has. Requests are
   * served meanwhile.
   */
  readonly leave?: () => Promise<void>
  /** Runs before the coordinator stops. Ends what would stay open, and begins nothing new. Requests in flight continue. */
  readonly beginStop?: () => void
  /** Runs after `beginStop`, when no request is in flight any more or the time for a drain has passed. */
  readonly drain?: () => Promise<void>
  readonly close?: CloseStep
}
