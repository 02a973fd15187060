// The names of users by their ids, as far as the caller may see them.
import type { Account } from '../../shared/api/account.ts'
import type { Member } from '../../shared/api/members.ts'
import type { Client } from '../connection/client.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'

/** The start of an id, which is enough to distinguish users and keys. */
const ID_LENGTH = 12

export type User = Pick<Member, 'id' | 'email' | 'name'>

/** Returns a function that returns the email or the name of a user; for an unknown user the start of the id. */
export async function loadMemberNames(client: Client, account?: Account): Promise<(id: string) => string> {
  const names = new Map(
    (await loadKnownUsers(client, account)).map(({ id, email, name }) => [id, email ?? name]),
  )
  return (id) => names.get(id) ?? id.slice(0, ID_LENGTH)
}

/** An actor as text: `ada@example.com` for `user:usr_2cbf…`, `key_2cbf1605` for `key:key_2cbf…`, `system`. */
export function formatActor(actor: string, getUserName: (id: string) => string): string {
  const [kind = '', id] = actor.split(':', 2)
  if (id === undefined) return actor
  return kind === 'user' ? getUserName(id) : id.slice(0, ID_LENGTH)
}

/** The members, for a caller with a sign-in that may list them; else only the own user. */
export async function loadKnownUsers(client: Client, account?: Account): Promise<User[]> {
  const [own, members] = await Promise.all([
    account ?? client.request<Account>('GET', '/me'),
    loadMembers(client),
  ])
  const { user } = own
  if (user?.id === undefined) return members
  const { id } = user
  return [{ ...user, id }, ...members.filter((member) => member.id !== id)]
}

/** Names are not worth a failure: a session may have expired. */
async function loadMembers(client: Client): Promise<User[]> {
  try {
    return (await client.requestBySession<{ members: Member[] }>('GET', '/members')).members
  } catch (error) {
    if (error instanceof CliError && error.exitCode !== EXIT.unreachable) return []
    throw error
  }
}
