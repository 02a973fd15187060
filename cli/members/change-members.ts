// Invites, changes and removes members of the workspace.

import type { Account, Role } from '../../shared/api/account.ts'
import type { Invitation, Member, UpdateMemberRequest } from '../../shared/api/members.ts'
import { isLoopback } from '../../shared/loopback.ts'
import type { JsonOption, QuietOption } from '../arguments/options.ts'
import { AMBIGUOUS_ID, findByPrefix } from '../arguments/unique-prefix.ts'
import type { Client } from '../connection/client.ts'
import type { Session } from '../connection/session.ts'
import { startBatch } from '../output/batch.ts'
import { canAsk, confirm } from '../output/confirm.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { printJson, printMessage, printStderr, sanitize } from '../output/print.ts'
import type { User } from './member-names.ts'

export const loadMembers = async (client: Client): Promise<Member[]> =>
  (await client.requestBySession<{ members: Member[] }>('GET', '/members')).members

export const getLabel = ({ email, name }: Pick<Member, 'email' | 'name'>): string => email ?? name

/** Finds a member by email, id, name or a unique prefix of the id. @throws CliError when none or several match */
export function findMember<T extends User>(members: readonly T[], typed: string): T {
  const lowercase = typed.toLowerCase()
  const found =
    members.find(({ email }) => email === lowercase) ??
    (typed.startsWith('usr_')
      ? findByPrefix<T>(members, typed, {
          getId: ({ id }) => id,
          describe: getLabel,
          kind: 'members',
        })
      : findByName(members, lowercase))
  if (found !== undefined) return found
  throw new CliError(
    EXIT.notFound,
    `No such member: '${sanitize(typed)}'. \`box members\` lists the email addresses and names.`,
    { code: 'no_such_member' },
  )
}

/** Names are not unique. */
function findByName<T extends User>(members: readonly T[], lowercase: string): T | undefined {
  const named = members.filter(({ name }) => name.toLowerCase() === lowercase)
  const ids = [...new Set(named.map(({ id }) => id))]
  if (ids.length < 2) return named[0]
  throw new CliError(
    EXIT.usage,
    `${ids.length} members have the name '${sanitize(lowercase)}'. Use an email address or an id:${named.map((member) => `\n  ${sanitize(member.id)}  ${sanitize(getLabel(member))}`).join('')}`,
    { code: AMBIGUOUS_ID },
  )
}

type Output = JsonOption & QuietOption

export async function inviteMember(
  { client }: Session,
  email: string,
  { role, name, json, quiet }: Output & { role: Role; name?: string },
): Promise<undefined> {
  const request = { email, role, ...(name !== undefined && { name }) }
  const invitation = await client.requestBySession<Invitation>('POST', '/members', request)
  if (json) printJson(invitation)
  else if (!quiet) printStderr(`${sanitize(getLabel(invitation.member))} is invited as ${role}.`)
  if (!json && !invitation.emailed) await explainSignIn(client)
}

/** Without mail, the owner of the coordinator passes the URL and the code on. */
async function explainSignIn(client: Client): Promise<void> {
  const { edge } = await client.requestBySession<Account>('GET', '/me')
  const url = new URL(edge.url)
  printMessage(
    `the coordinator sends no mail: notify the person yourself. They sign in with \`box login ${sanitize(edge.url)}\` and this email address. The coordinator then prints their code in its log, after \`box up\` coordinator.log in its data directory. Pass the code on.`,
  )
  if (isLoopback(url.hostname))
    printMessage(
      `${sanitize(url.origin)} is an address of this machine only: another person cannot use it. \`box docs tls\` and \`box docs sign-in\` describe BOXWOOD_PUBLIC_URL and BOXWOOD_SMTP_URL.`,
    )
}

export async function setMember(
  { client }: Session,
  typed: string,
  { role, name, json, quiet }: Output & UpdateMemberRequest,
): Promise<undefined> {
  if (role === undefined && name === undefined)
    throw new CliError(EXIT.usage, 'Nothing to set. Use --role or --name.')
  const { id } = findMember(await loadMembers(client), typed)
  const request = { ...(role !== undefined && { role }), ...(name !== undefined && { name }) }
  const { member } = await client.requestBySession<{ member: Member }>('PATCH', `/members/${id}`, request)
  if (json) printJson(member)
  else if (!quiet) printStderr(sanitize(`${getLabel(member)}: ${member.name}, ${member.role}`))
}

/** Returns the exit code. */
export async function removeMembers(
  { client, signal }: Session,
  typed: string[],
  { yes, json, quiet }: Output & { yes?: boolean },
): Promise<number> {
  const batch = startBatch(typed)
  const all = await loadMembers(client)
  const members = await batch.run([...new Set(typed)], async (text) => findMember(all, text))
  if (members.length === 0) return batch.exitCode
  const labels = sanitize(members.map(getLabel).join(', '))
  const question = `Remove ${labels} from the workspace, and revoke their API keys and sessions?`
  if (!yes && canAsk(json ?? false) && !(await confirm(question, signal))) {
    printMessage('no member was removed.')
    return EXIT.failed
  }
  await batch.run(members, async (member) => {
    await client.requestBySession('DELETE', `/members/${member.id}`)
    if (json) printJson({ id: member.id, email: member.email, removed: true })
    else if (!quiet) printStderr(`${sanitize(getLabel(member))}: removed`)
  })
  return batch.exitCode
}
