// The user with whose permissions the agent and the commands of the box run.
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { SetupError } from './setup-error.ts'

export type AgentUser = {
  /** Null: the user of this process. */
  name: string | null
  uid: number
  gid: number
  home: string
}

/** @throws SetupError when this user cannot run the agent as another one, or when there is no such user */
export async function findUser(name: string | null): Promise<AgentUser> {
  const uid = process.getuid?.() ?? 0
  const gid = process.getgid?.() ?? 0
  if (name === null) return { name: null, uid, gid, home: homedir() }
  const passwd = await readFile('/etc/passwd', 'utf8')
  for (const line of passwd.split('\n')) {
    const [user, , userId, groupId, , home] = line.split(':')
    if (user !== name || !home) continue
    if (uid !== 0 && uid !== Number(userId))
      throw new SetupError('Only root can install for another user. Run the installer with sudo.')
    if (!existsSync(home))
      throw new SetupError(
        `The home directory ${home} of ${name} does not exist. Create it, or pass another user with --user.`,
      )
    return { name, uid: Number(userId), gid: Number(groupId), home }
  }
  throw new SetupError(
    `There is no user ${name} in /etc/passwd. Create it with \`useradd --create-home ${name}\`.`,
  )
}
