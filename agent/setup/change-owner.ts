// Gives the installation to the user of the agent, who changes the versions in an upgrade.
import { lchown, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { AgentUser } from './user.ts'

/** No-op for the user of this process. */
export async function changeOwner(dir: string, { uid, gid }: AgentUser): Promise<void> {
  if (uid === process.getuid?.()) return
  for (const path of await readdir(dir, { recursive: true })) await lchown(join(dir, path), uid, gid)
  await lchown(dir, uid, gid)
}
