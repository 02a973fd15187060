// Secrets: their grants and hosts as texts, and the forms that create, change and grant one.
import type {
  BrokerTest,
  CreateSecretRequest,
  Grantee,
  PatchSecretRequest,
  Secret,
  SecretGrant,
} from '../../shared/api/secrets.ts'
import { formatCommandLine } from './command-line.ts'

type Values = Record<string, string>
/** Boxes and members that may get a grant. */
export type Grantees = {
  boxes: readonly { id: string; hostname: string }[]
  members: readonly { id: string; email: string | null }[]
}

/** The box, or the owner of the boxes. */
export const getGrantee = ({ id, hostname, email, boxId, userId }: SecretGrant): string =>
  hostname ?? email ?? boxId ?? userId ?? id

/** Further grants and hosts are counted. */
const MAX_LISTED = 3

function formatList(texts: readonly string[]): string {
  const rest = texts.length - MAX_LISTED
  return `${texts.slice(0, MAX_LISTED).join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`
}

export function formatGrants({ scope, grants }: Pick<Secret, 'scope' | 'grants'>): string {
  if (scope === 'workspace') return 'all of the workspace that are not restricted'
  return grants.length === 0 ? 'none: it has no grants' : formatList(grants.map(describeGrant))
}

export const describeGrant = (grant: SecretGrant): string =>
  grant.boxId === null ? `boxes of ${getGrantee(grant)}` : getGrantee(grant)

export const formatHosts = (hosts: readonly string[]): string =>
  hosts.length === 0 ? 'none: used nowhere' : formatList(hosts)

/** Where the value is used in a request. */
export const formatLocations = ({ in: locations }: Pick<Secret, 'in'>): string => locations.join(', ')

const splitLines = (text = ''): string[] =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean)

/** The chosen boxes and members of a form. */
export const toGrantees = ({ boxIds, userIds }: Values): Grantee[] => [
  ...splitLines(boxIds).map((boxId) => ({ boxId })),
  ...splitLines(userIds).map((userId) => ({ userId })),
]

/** The words that name the chosen boxes and members on the command line. */
function listGranteeWords({ boxIds, userIds }: Values, { boxes, members }: Grantees): string[] {
  const names = new Map(boxes.map(({ id, hostname }) => [id, hostname]))
  const emails = new Map(members.map(({ id, email }) => [id, email ?? id]))
  return [
    ...splitLines(boxIds).map((id) => names.get(id) ?? id),
    ...splitLines(userIds).map((id) => emails.get(id) ?? id),
  ]
}

/** A secret without hosts is used nowhere. */
export const acceptsNewSecret = ({ name, value, hosts }: Values): boolean =>
  Boolean(name) && Boolean(value) && splitLines(hosts).length > 0

export function toCreateRequest(values: Values): CreateSecretRequest {
  const { name = '', value = '', description } = values
  const grants = toGrantees(values)
  return {
    name,
    value,
    hosts: splitLines(values.hosts),
    ...(description && { description }),
    ...(grants.length > 0 && { grants }),
  }
}

export const formatCreateCommand = (values: Values, grantees: Grantees): string =>
  formatCommandLine(
    ...['box', 'secrets', 'set', values.name || 'NAME'],
    ...splitLines(values.hosts).flatMap((host) => ['--host', host]),
    ...(values.description ? ['--description', values.description] : []),
    ...listGranteeWords(values, grantees).flatMap((grantee) => ['--grant', grantee]),
  )

/** The changed fields only. Null: nothing has changed, or all hosts were removed. */
export function toPatchRequest(secret: Secret, values: Values): PatchSecretRequest | null {
  const hosts = splitLines(values.hosts)
  if (hosts.length === 0 && secret.hosts.length > 0) return null
  const request: PatchSecretRequest = {
    ...(values.description !== (secret.description ?? '') && { description: values.description || null }),
    ...(hosts.join('\n') !== secret.hosts.join('\n') && { hosts }),
  }
  return Object.keys(request).length === 0 ? null : request
}

export function formatChangeCommand(secret: Secret, values: Values): string {
  const request = toPatchRequest(secret, values)
  if (request === null) return formatCommandLine('box', 'secrets', 'show', secret.name)
  const command = formatCommandLine(
    ...['box', 'secrets', 'set', secret.name, '--keep-value'],
    ...(request.hosts ?? []).flatMap((host) => ['--host', host]),
  )
  const { description } = request
  // formatCommandLine() leaves out empty words, which remove the description here.
  return `${command}${description === undefined ? '' : ` --description ${formatCommandLine(description) || "''"}`}`
}

/** Which hosts get the value by the change. */
export function warnOfNewHosts({ hosts }: Pick<Secret, 'hosts'>, values: Values): string | null {
  const added = splitLines(values.hosts).filter((host) => !hosts.includes(host))
  return added.length === 0 ? null : `The value is disclosed to ${added.join(', ')}.`
}

export const formatGrantCommand = ({ name }: Pick<Secret, 'name'>, values: Values, all: Grantees): string => {
  const words = listGranteeWords(values, all)
  return formatCommandLine('box', 'secrets', 'grant', name, ...(words.length > 0 ? words : ['BOX']))
}

/** What the agent of the box has found when it tested the way to the coordinator. */
export function describeBroker({ state, message }: BrokerTest): string {
  if (state === 'ready') return 'Secrets work on the box: its agent has tested it.'
  if (state === 'failed')
    return `Secrets do not work on the box: ${message ?? 'the test of its agent has failed'}`
  return 'It is not known whether secrets work on the box: its agent tests it when the box runs.'
}
