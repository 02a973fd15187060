// The filters and the pages of the audit log.
import type { AuditEvent } from '../../shared/api/audit.ts'
import type { AuditKind } from '../../shared/audit-kinds.ts'
import { formatCommandLine } from './command-line.ts'
import { formatUser } from './people.ts'

export type AuditFilter = {
  /** Local times, such as 2026-01-31T09:30; empty: no limit. */
  since: string
  until: string
  /** A kind, or several that are separated by commas. */
  kind: string
  /** The id of a box. */
  box: string
  /** The id of a user. */
  actor: string
  origin: string
}

export const NO_FILTER: AuditFilter = { since: '', until: '', kind: '', box: '', actor: '', origin: '' }
export const AUDIT_PAGE = 50

/** The parameters of GET /audit, without the page. */
export function toAuditQuery(filter: AuditFilter): URLSearchParams {
  const query = new URLSearchParams()
  for (const name of ['since', 'until'] as const) {
    const time = Date.parse(filter[name])
    if (!Number.isNaN(time)) query.set(name, new Date(time).toISOString())
  }
  for (const name of ['kind', 'box', 'actor', 'origin'] as const) {
    const value = filter[name].replaceAll(' ', '')
    if (value !== '') query.set(name, value)
  }
  return query
}

/** @param before the id before which the page ends; null: the newest page */
export function toPageQuery(filter: AuditFilter, before: number | null): URLSearchParams {
  const query = toAuditQuery(filter)
  query.set('limit', String(AUDIT_PAGE))
  if (before !== null) query.set('before', String(before))
  return query
}

/** The address of the CSV file, relative to the base of the document. */
export function formatCsvPath(filter: AuditFilter): string {
  const query = toAuditQuery(filter)
  query.set('format', 'csv')
  return `api/v1/audit?${query}`
}

export const formatAuditCommand = (filter: AuditFilter): string =>
  formatCommandLine(
    'box',
    'audit',
    ...[...toAuditQuery(filter)].flatMap(([name, value]) => [`--${name}`, value]),
  )

/** The names of boxes in their own events, by id: the newest ones, also of deleted boxes. @param events newest first */
export function getNamesOfEvents(
  events: readonly Pick<AuditEvent, 'kind' | 'boxId' | 'detail'>[],
): ReadonlyMap<string, string> {
  const names = new Map<string, string>()
  for (const { kind, boxId, detail } of events)
    if (boxId !== null && kind.startsWith('box.') && typeof detail.name === 'string' && !names.has(boxId))
      names.set(boxId, detail.name)
  return names
}

/** All kinds of events. The dashboard contains no code of shared/. */
export const KINDS = [
  'session.sign_in',
  'session.sign_out',
  'session.switch',
  'sign_in.rejected',
  'key.create',
  'key.update',
  'key.rotate',
  'key.revoke',
  'key.verify',
  'ticket.create',
  'member.invite',
  'member.update',
  'member.remove',
  'workspace.create',
  'workspace.update',
  'workspace.close',
  'workspace.reopen',
  'policy.update',
  'agent_rollout.update',
  'audit.export',
  'audit.prune',
  'audit_sink.update',
  'audit_sink.delete',
  'access.denied',
  'machine.token_create',
  'machine.token_revoke',
  'machine.enroll',
  'box.create',
  'box.update',
  'box.wake',
  'box.suspend',
  'box.sleep',
  'box.resize',
  'box.move',
  'box.give',
  'box.fork',
  'box.delete',
  'box.connect',
  'box.forward',
  'box.desktop_start',
  'box.desktop_stop',
  'port_share.create',
  'port_share.update',
  'port_share.revoke',
  'port_share.open',
  'environment.create',
  'environment.update',
  'environment.default',
  'environment.upgrade',
  'environment.delete',
  'box.repos_update',
  'box.restrict',
  'secret.create',
  'secret.update',
  'secret.rotate',
  'secret.delete',
  'secret.grant',
  'secret.ungrant',
  'secret.mount',
  'secret.unmount',
  'aws_role.connect',
  'aws_role.verify',
  'aws_role.disconnect',
  'aws_connect.create',
  'aws_connect.cancel',
  'federation.rotate',
  'snapshot.create',
  'snapshot.restore',
  'snapshot.delete',
  'template.create',
  'template.delete',
  'billing.low',
  'billing.empty',
  'billing.credit',
  'billing.hold',
  'billing.release',
  'billing.payment',
  'billing.payment_failed',
  'billing.refund',
  'billing.card_remove',
  'image.pull',
  'image.remove',
  'command_history.delete',
  'exec',
  'file.upload',
  'file.download',
  'prompt',
  'desktop.start',
] as const satisfies readonly AuditKind[]

/** All kinds of the same object, such as those of keys, and each of them. */
export function groupKinds(kinds: readonly string[]): { object: string; kinds: string[] }[] {
  const groups = Object.groupBy(kinds, (kind) => kind.split('.')[0] ?? kind)
  return Object.entries(groups)
    .map(([object, members = []]) => ({ object: object.replaceAll('_', ' '), kinds: members }))
    .sort((a, b) => (a.object < b.object ? -1 : 1))
}

/** Names of users and boxes, by their ids. */
export type AuditNames = { users: ReadonlyMap<string, string>; boxes: ReadonlyMap<string, string> }

/** Who did it, in words. */
export function describeActor(
  { actorUserId, actorTokenId, actorKind }: Pick<AuditEvent, 'actorUserId' | 'actorTokenId' | 'actorKind'>,
  { users }: AuditNames,
): string {
  if (actorUserId !== null) return formatUser(actorUserId, { userId: null, names: users })
  return actorKind === 'system' && actorTokenId === null ? 'the coordinator' : 'a key without a user'
}

/**
 * The fields of a detail with the names that ids stand for. Without ids of other objects when the detail has their name, and
 * without fields that have no value: `box audit --json` prints all.
 */
export function describeDetail(
  detail: AuditEvent['detail'],
  names: AuditNames,
  formatTime: (ms: number) => string,
): string {
  const hasName = typeof detail.name === 'string'
  const replaceId = (text: string) => names.users.get(text) ?? names.boxes.get(text) ?? text
  return Object.entries(detail)
    .filter(([name, value]) => value !== null && value !== '' && !isUnknownId(name, value, hasName))
    .map(([name, value]) => {
      const text = String(value)
      const shown = INSTANT.test(text)
        ? formatTime(Date.parse(text))
        : text.split(/,\s*/).map(replaceId).join(', ')
      return name === 'name' ? shown : `${toWords(name)}: ${shown}`
    })
    .join(', ')
}

const INSTANT = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/
/** Of a session, and of an object whose name the detail has. */
const isUnknownId = (name: string, value: unknown, hasName: boolean): boolean =>
  name === 'sessionId' ||
  (hasName && name.endsWith('Id') && name !== 'userId' && /^[a-z]+_/.test(String(value)))
/** userId → user, amountUsd → amount usd. */
const toWords = (name: string): string =>
  name.replace(/Ids?$/, '').replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
