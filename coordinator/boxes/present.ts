// Converts rows of boxes, events and jobs to API objects (spec §2.2).
import type { Selectable } from 'kysely'
import type { Box, BoxDetail, BoxEvent, Isolation, Job, Vitals } from '../../shared/api/boxes.ts'
import type { Machine } from '../../shared/api/machine.ts'
import { toTimestamp, toTimestampOrNull } from '../../shared/clock.ts'
import { boundTier, type Capacity } from '../../shared/tiers.ts'
import type { BoxEventRow, BoxRow, JobRow } from '../db/schema.ts'
import { UNTIL_CONNECTED } from '../jobs/leases.ts'
import { parseLabels } from './labels.ts'
import type { ListedBoxRow } from './store/box-lists.ts'

export type EnvVar = { name: string; value: string }

/** Does not validate: the coordinator wrote the JSON columns from validated values. */
const fromJson = <T>(text: string | null): T | null => (text === null ? null : (JSON.parse(text) as T))

export const parseEnvVars = (row: Pick<BoxRow, 'env_vars'>): EnvVar[] =>
  fromJson<EnvVar[]>(row.env_vars) ?? []

function presentIsolation({ isolation }: Pick<BoxRow, 'isolation'>): Isolation | null {
  const stored = fromJson<Omit<Isolation, 'network'> & Partial<Isolation>>(isolation)
  // Boxes that were started before this field existed share the network of the host.
  return stored && { ...stored, network: stored.network ?? 'host' }
}

export const presentBox = (row: ListedBoxRow): Box => ({
  id: row.id,
  hostname: row.hostname,
  kind: row.kind,
  tier: row.tier,
  region: row.region,
  desiredRegion: row.desired_region,
  desiredState: row.desired_state,
  observedState: row.observed_state,
  suspendedAs: row.observed_state === 'suspended' ? row.suspended_as : null,
  autoPauseMin: row.auto_pause_min,
  pauseAt: toTimestampOrNull(row.pause_at),
  deleteAt: toTimestampOrNull(row.delete_at),
  autoSnapshotHours: row.auto_snapshot_hours,
  autoSnapshotKeep: row.auto_snapshot_keep,
  environmentId: row.environment_id,
  environmentVersionNo: row.environment_version_no,
  envVars: parseEnvVars(row),
  labels: parseLabels(row.labels),
  restricted: row.restricted === 1,
  ownerUserId: row.owner_user_id,
  quietHoursExempt: row.quiet_hours_exempt === 1,
  image: row.image,
  imageDigest: row.image_digest,
  isolation: presentIsolation(row),
  createdAt: toTimestamp(row.created_at),
  updatedAt: toTimestamp(row.updated_at),
})

export const presentEvent = (row: Selectable<BoxEventRow>): BoxEvent => ({
  id: `evt_${row.seq}`,
  fromState: row.from_state,
  toState: row.to_state,
  reason: row.reason,
  code: row.error_code,
  actor: row.actor,
  at: toTimestamp(row.at),
})

export const presentJob = (row: JobRow): Job => ({
  op: row.op,
  step: row.step,
  attempt: row.attempt,
  lastError: row.last_error,
  nextRetryAt: row.next_retry_at === UNTIL_CONNECTED ? null : toTimestampOrNull(row.next_retry_at),
})

export type BoxDetailInput = {
  box: BoxRow
  /** Newest first. */
  events: readonly Selectable<BoxEventRow>[]
  job: JobRow | undefined
  connected: boolean
  /** The last heartbeat in memory, newer than the one in the row. */
  heartbeat: { vitals: Vitals; at: number } | undefined
  /** The machine on which all managed boxes of the region run. undefined: each has a machine of its own. */
  capacity: Capacity | undefined
  environment: BoxDetail['environment']
}

export function presentDetail({
  box: row,
  events,
  job,
  connected,
  heartbeat,
  capacity,
  environment,
}: BoxDetailInput): BoxDetail {
  return {
    box: presentBox(row),
    state: {
      desired: row.desired_state,
      observed: row.observed_state,
      connected,
      since: toTimestamp(row.state_since),
      lastHeartbeatAt: toTimestampOrNull(heartbeat?.at ?? row.last_heartbeat_at),
    },
    vitals: heartbeat?.vitals ?? fromJson<Vitals>(row.vitals),
    machine: fromJson<Machine>(row.machine),
    size: row.kind === 'machine' ? null : boundTier(row.tier, capacity),
    events: events.map(presentEvent),
    job: job ? presentJob(job) : null,
    pausesSurvived: row.pauses_survived,
    environment,
    envVars: parseEnvVars(row),
    restricted: row.restricted === 1,
  }
}
