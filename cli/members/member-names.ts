// The names of users by their ids, as far as the caller may see them.
import type { Member } from '../../shared/api/members.ts'
import type { CurrentSession } from '../../shared/api/sessions.ts'
import type { Client } from '../connection/client.ts'
import { CliError } from '../output/exit-codes.ts'

/** The start of a user id, which is enough to distinguish users. */
const ID_LENGTH = 12

/** Returns a function that returns the email or the name of a user; for an unknown user the start of the id. */
export async function loadMemberNames(client: Client): Promise<(id: string) => string> {
  const names = new Map((await loadUsers(client)).map(({ id, email, name }) => [id, email ?? name]))
  return (id) => names.get(id) ?? id.slice(0, ID_LENGTH)
}

type User = Pick<Member, 'id' | 'email' | 'name'>

/** The members; for a contractor only the own user; without a sign-in none. */
async function loadUsers(client: Client): Promise<User[]> {
  try {
    return (await client.requestBySession<{ members: Member[] }>('GET', '/members')).members
  } catch (error) {
    if (error instanceof CliError && error.code === 'not_signed_in') return []
    if (!(error instanceof CliError) || error.code !== 'not_allowed') throw error
    return [(await client.requestBySession<CurrentSession>('GET', '/session')).user]
  }
}
