// The events of the audit log as sentences.
import type { AuditEvent } from '../../shared/api/audit.ts'
import type { PolicyName } from '../../shared/api/policies.ts'
import type { AuditKind } from '../../shared/audit-kinds.ts'
import { formatUser } from './people.ts'
import { POLICIES } from './policies.ts'
import { isKeyOf } from './routes.ts'

/**
 * A name in braces is the actor, the box, or a field of the detail; `{a|b}` is the first one that has a value. A part in brackets
 * is omitted when a value in it is missing, and in the name of the kind.
 */
export const SENTENCES: Readonly<Record<AuditKind, string>> = {
  'session.sign_in': '{actor} signed in[ from {address}]',
  'session.sign_out': '{actor} signed out',
  'session.switch': '{actor} switched to another workspace',
  'sign_in.rejected': 'Sign-in with a wrong or expired code was rejected[ for {userId}][ from {address}]',
  'key.create': '{actor} created API key {name}',
  'key.update': '{actor} changed API key {name}',
  'key.rotate': '{actor} rotated API key {name}',
  'key.revoke': '{actor} revoked API key {name}',
  'key.verify': '{actor} confirmed the account of an agent',
  'ticket.create': '{actor} connected to a box[: {box}]',
  'member.invite': '{actor} invited {email|userId}[ as {role}]',
  'member.update': '{actor} changed member {userId}[ from {previousRole}][ to {role}]',
  'member.remove': '{actor} removed member {email|userId}',
  'workspace.create': '{actor} created the workspace[ {name}]',
  'workspace.update': '{actor} changed the settings of the workspace',
  'workspace.close': '{actor} closed the workspace',
  'workspace.reopen': '{actor} reopened the workspace',
  'policy.update': '{actor} changed policies[: {fields}]',
  'agent_rollout.update': '{actor} changed the rollout of agents[ to {share} % of the boxes]',
  'audit.export': '{actor} downloaded the audit log',
  'audit.prune': '{actor} deleted {deleted} expired events',
  'audit_sink.update': '{actor} set the export of the audit log[ to {host}]',
  'audit_sink.delete': '{actor} removed the export of the audit log[ to {host}]',
  'access.denied': 'Request[ of {actor}] was refused[: {method} {route}]',
  'machine.token_create': '{actor} created a token to join a machine[ as {name}]',
  'machine.token_revoke': '{actor} revoked a token to join a machine[ as {name}]',
  'machine.enroll': 'Machine {box} joined[ with a token of {actor}]',
  'box.create': '{actor} created box {box}',
  'box.update': '{actor} changed the settings of box {box}',
  'box.wake': '{actor} woke box {box}',
  'box.suspend': '{actor} suspended box {box}',
  'box.sleep': '{actor} packed box {box} into an archive',
  'box.resize': '{actor} resized box {box}[ from {from} to {to}]',
  'box.move': '{actor} moved box {box}[ from {from} to {to}]',
  'box.give': '{actor} gave box {box} to another member[, {email|to}]',
  'box.fork': '{actor} forked box {box}[ as {newName}]',
  'box.delete': '{actor} deleted box {box}',
  'box.connect': '{actor} opened a terminal or the desktop of box {box}',
  'box.forward': '{actor} connected to a port of box {box}[, port {port}]',
  'box.desktop_start': '{actor} started the desktop of box {box}',
  'box.desktop_stop': '{actor} stopped the desktop of box {box}',
  'port_share.create': '{actor} shared port {port}[ of box {box}][ with {access}]',
  'port_share.update': '{actor} changed the link to port {port}[ of box {box}]',
  'port_share.revoke': '{actor} revoked the link to port {port}[ of box {box}]',
  'port_share.open': '{actor} opened the link to port {port}[ of box {box}]',
  'environment.create': '{actor} created environment {name}',
  'environment.update': '{actor} changed environment {name}',
  'environment.default': '{actor} changed the default environment[, {name}]',
  'environment.upgrade': '{actor} upgraded the boxes of environment {name}[ to version {versionNo}]',
  'environment.delete': '{actor} deleted environment {name}',
  'box.repos_update': '{actor} updated the repositories of box {box}',
  'box.restrict': '{actor} restricted box {box}',
  'secret.create': '{actor} created secret {name}',
  'secret.update': '{actor} changed secret {name}',
  'secret.rotate': '{actor} rotated secret {name}',
  'secret.delete': '{actor} deleted secret {name}',
  'secret.grant': '{actor} granted secret {name}[ to {box|email|userId}]',
  'secret.ungrant': '{actor} removed a grant of secret {name}[ from {box|email|userId}]',
  'secret.mount': '{actor} mounted secret {name}[ on box {box}]',
  'secret.unmount': '{actor} unmounted secret {name}[ from box {box}]',
  'aws_role.connect': '{actor} connected AWS role {profile}',
  'aws_role.verify': '{actor} verified AWS role {profile}',
  'aws_role.disconnect': '{actor} disconnected AWS role {profile}',
  'aws_connect.create': '{actor} created a link that connects an AWS role',
  'aws_connect.cancel': '{actor} cancelled a link that connects an AWS role',
  'federation.rotate': '{actor} rotated the signing key of the identity issuer',
  'snapshot.create': '{actor} took snapshot {name}[ of box {box}]',
  'snapshot.restore': '{actor} created box {box} from a snapshot',
  'snapshot.delete': '{actor} deleted snapshot {name}[ of box {box}]',
  'template.create': '{actor} made template {template|name}[ of box {box}]',
  'template.delete': '{actor} removed template name {template|name}',
  'billing.low': 'Balance became low',
  'billing.empty': 'Balance became empty, and the boxes were suspended',
  'billing.credit': 'An operator changed the credit[ by {amountUsd} dollars]',
  'billing.hold': 'An operator paused the workspace',
  'billing.release': 'The workspace is not paused any more',
  'billing.payment': 'Payment by card was received',
  'billing.payment_failed': 'Payment from the saved card failed',
  'billing.refund': 'Payment by card was refunded',
  'billing.card_remove': '{actor} removed the saved card',
  'image.pull': '{actor} started the download of image {image}',
  'image.remove': '{actor} removed image {image}',
  'command_history.delete': '{actor} deleted commands from the history[ of box {box}]',
  exec: '{actor} ran a command[ on box {box}]',
  'file.upload': '{actor} copied a file to a box[, {box}]',
  'file.download': '{actor} copied a file from a box[, {box}]',
  prompt: '{actor} sent a prompt to a coding agent[ on box {box}]',
  'desktop.start': '{actor} started a desktop[ on box {box}]',
}

export const KINDS = Object.keys(SENTENCES) as AuditKind[]

/** The name of the kind for people, such as `Created API key`. */
export function describeKind(kind: AuditKind): string {
  const text = SENTENCES[kind]
    .replace(/\[.*?\]/g, '')
    .replace(/\{.*?\}/g, '')
    .replace(/\s+/g, ' ')
    .trim()
  return capitalize(text)
}

const capitalize = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

/** Names of users and boxes, by their ids. The boxes have `(deleted)` when they are. */
export type AuditNames = { users: ReadonlyMap<string, string>; boxes: ReadonlyMap<string, string> }

/** A text of the sentence. A name is of a person or a thing; that of a box leads to its page. */
export type SentencePart = { text: string; role: 'text' | 'name' | 'box' }

export function describeEvent(event: AuditEvent, names: AuditNames): SentencePart[] {
  // A later version of the coordinator may have further kinds.
  const template = isKeyOf(SENTENCES, event.kind) ? SENTENCES[event.kind] : '{actor}: {kind}'
  const parts = template.split(/(\[.*?\])/).flatMap((text) => {
    const isOptional = text.startsWith('[')
    const filled = fill(isOptional ? text.slice(1, -1) : text, event, names)
    if (isOptional && filled.some((part) => part === null)) return []
    return filled.flatMap((part, index) => {
      // A missing value needs no space before it.
      if (part !== null && filled[index + 1] === null) return [{ ...part, text: part.text.trimEnd() }]
      return part ?? []
    })
  })
  const [first, ...rest] = parts
  // The name of a user stays as it is.
  return first === undefined || names.users.get(event.actorUserId ?? '') === first.text
    ? parts
    : [{ ...first, text: capitalize(first.text) }, ...rest]
}

function fill(template: string, event: AuditEvent, names: AuditNames): (SentencePart | null)[] {
  return template
    .split(/(\{.*?\})/)
    .filter(Boolean)
    .map((text) => {
      if (!text.startsWith('{')) return { text, role: 'text' }
      const fields = text.slice(1, -1).split('|')
      for (const field of fields) {
        const value = getValue(field, event, names)
        if (value !== null) return { text: value, role: field === 'box' ? 'box' : 'name' }
      }
      return null
    })
}

/** Null: the event has no such value. */
function getValue(field: string, event: AuditEvent, names: AuditNames): string | null {
  const { kind, boxId, detail } = event
  if (field === 'actor') return describeActor(event, names)
  if (field === 'kind') return kind
  if (field === 'box')
    return boxId === null ? null : (names.boxes.get(boxId) ?? `${boxId.slice(0, 8)} (deleted)`)
  const value = detail[field]
  if (value === undefined || value === null || value === '') return null
  const text = String(value)
  if (field === 'userId' || (kind === 'box.give' && field === 'to'))
    return names.users.get(text) ?? 'a former member'
  if (kind === 'policy.update' && field === 'fields') return describePolicies(text)
  if (field === 'access') return AUDIENCES[text] ?? text
  return text
}

const AUDIENCES: Readonly<Record<string, string>> = {
  members: 'members',
  anyone: 'anyone who has the link',
  public: 'the public',
}

const describePolicies = (fields: string): string =>
  fields
    .split(',')
    .map((name) => (isKeyOf(POLICIES, name) ? POLICIES[name satisfies PolicyName].title : name))
    .join(', ')

type AuditActor = Pick<AuditEvent, 'actorUserId' | 'actorTokenId' | 'actorKind'>

/** Who did it, in words. */
export function describeActor(
  { actorUserId, actorTokenId, actorKind }: AuditActor,
  { users }: Pick<AuditNames, 'users'>,
): string {
  if (actorUserId !== null) return formatUser(actorUserId, { userId: null, names: users })
  return isSystem({ actorUserId, actorTokenId, actorKind }) ? 'the coordinator' : 'a key without a user'
}

export const isSystem = ({ actorUserId, actorTokenId, actorKind }: AuditActor): boolean =>
  actorUserId === null && actorTokenId === null && actorKind === 'system'
