// The details of the audit events about new and changed boxes. They never have the values of environment variables.
import type { AuditDetail } from '../audit/service.ts'
import type { BoxRow, SnapshotRow } from '../db/schema.ts'
import { presentBox } from './present.ts'

export const describeNewBox = (
  { tier, region, restricted, environment_id, environment_version_no }: BoxRow,
  source: SnapshotRow | null,
): AuditDetail => ({
  tier,
  region,
  ...(restricted === 1 && { restricted: true }),
  ...(environment_id !== null && {
    environmentId: environment_id,
    environmentVersionNo: environment_version_no,
  }),
  ...(source && { snapshotId: source.id, sourceBoxId: source.box_id }),
  ...(source && source.template_name !== null && { template: source.template_name }),
})

const SETTINGS = [
  'autoPauseMin',
  'pauseAt',
  'deleteAt',
  'autoSnapshotHours',
  'autoSnapshotKeep',
  'quietHoursExempt',
] as const

/** The changed settings with their new values; null: nothing has changed. */
export function describePatch(before: BoxRow, after: BoxRow): AuditDetail | null {
  const [old, current] = [presentBox(before), presentBox(after)]
  const settings = SETTINGS.filter((name) => old[name] !== current[name])
  const isRenamed = before.hostname !== after.hostname
  const fields = [
    ...(isRenamed ? ['name'] : []),
    ...(before.env_vars === after.env_vars ? [] : ['env']),
    ...(before.labels === after.labels ? [] : ['labels']),
    ...settings,
  ]
  if (fields.length === 0) return null
  return {
    fields: fields.join(','),
    ...(isRenamed && { previousName: before.hostname }),
    ...Object.fromEntries(settings.map((name) => [name, current[name]])),
  }
}
