// Gives the installation to the user of the agent, who changes the versions in an upgrade.
import { lchown, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { AgentUser } from './user.ts'

/**
 * No-op for the user of this process. The content of a directory changes its owner before the directory does: in its own
 * directory, the user can replace files by links to files of root.
 */
export async function changeOwner(dir: string, { uid, gid }: AgentUser): Promise<void> {
  if (uid === process.getuid?.()) return
  const paths = await readdir(dir, { recursive: true })
  // In the reverse order, a path follows the paths that begin with it.
  for (const path of paths.sort().reverse()) await lchown(join(dir, path), uid, gid)
  await lchown(dir, uid, gid)
}
