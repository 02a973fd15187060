// What makes and ends machines. Every call is idempotent by the box's id: the reconciler repeats what it is not sure of.
import type { Isolation } from '../../shared/api/boxes.ts'
import type { Tier } from '../../shared/tiers.ts'

export type MachineSpec = {
  boxId: string
  hostname: string
  tier: Tier
  /** Where the agent dials: the coordinator's own URL, without a path. */
  coordinatorUrl: string
}

export type MachineState = 'absent' | 'stopped' | 'running'

export interface Provider {
  readonly name: string
  /** What separates the boxes it makes, for the line printed at start. */
  describe(): string
  /** Makes the machine, not running, with this token for its agent. Called again: puts the token in place of the old. */
  create(spec: MachineSpec & { agentToken: string }): Promise<{ isolation: Isolation | null }>
  /** Starts the machine and its agent. Already running: nothing happens. */
  start(spec: MachineSpec): Promise<{ isolation: Isolation | null }>
  /** Ends every process of the machine (TERM, a grace, KILL) and keeps its files. Not running: nothing happens. */
  stop(boxId: string): Promise<void>
  /** Ends every process and removes every trace. Absent: nothing happens. */
  destroy(boxId: string): Promise<void>
  inspect(boxId: string): Promise<MachineState>
  close(): Promise<void>
}

/** A failure that trying again cannot mend: a create ends in provision_failed at once. */
export class PermanentProviderError extends Error {
  override name = 'PermanentProviderError'
}
