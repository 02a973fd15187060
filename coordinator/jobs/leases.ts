// Leases of stored jobs: a job is run by one coordinator at a time.

export { createLeases, UNTIL_CONNECTED } from './lease-store.ts'

/** The coordinator that claims a job or records its result, its host, and the time of its clock. */
export type Claimant = { owner: string; host: string; now: number }
