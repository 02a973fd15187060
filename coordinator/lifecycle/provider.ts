// The interface of a provider, which creates and runs machines. Every call is idempotent per box: the reconciler
// repeats a call whose outcome it does not know.
import type { Isolation } from '../../shared/api/boxes.ts'
import type { Tier } from '../../shared/tiers.ts'

export type MachineSpec = {
  boxId: string
  hostname: string
  tier: Tier
  /** The coordinator's URL for the agent to connect to, without a path. */
  coordinatorUrl: string
}

export type MachineState = 'absent' | 'stopped' | 'running'

/** The disk of a provider whose machines share one file system. */
export type SharedDisk = {
  /** The bytes that the files of the box occupy. */
  measure(boxId: string, signal: AbortSignal): Promise<number>
  readSpace(): Promise<{ freeBytes: number; totalBytes: number }>
}

export interface Provider {
  readonly name: string
  /** The version with which machines start their agents. Absent: unknown. */
  readonly agentVersion?: string
  /** Absent: each machine has a disk of its tier's size. */
  readonly sharedDisk?: SharedDisk
  /** The isolation between boxes, for the startup banner. */
  describe(): string
  /** Creates a stopped machine. No-op when it exists. */
  create(spec: MachineSpec): Promise<{ isolation: Isolation | null }>
  /**
   * Starts the machine and its agent, which connects with this token. A running machine continues to run: its agent uses
   * the token at its next connection.
   */
  start(spec: MachineSpec & { agentToken: string }): Promise<{ isolation: Isolation | null }>
  /** Terminates every process of the machine (SIGTERM, grace period, SIGKILL). Keeps its files. No-op when stopped. */
  stop(boxId: string): Promise<void>
  /** Terminates every process and removes all files. No-op when absent. */
  destroy(boxId: string): Promise<void>
  inspect(boxId: string): Promise<MachineState>
  close(): Promise<void>
}

/** A failure that a retry cannot fix: a create job ends in provision_failed immediately. */
export class PermanentProviderError extends Error {
  override name = 'PermanentProviderError'
}
