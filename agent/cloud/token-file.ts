// The file with the token of the box, which the AWS CLI and the SDKs read when they request credentials.
import { chmod, lstat, mkdir, rm, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { ApiError } from '../../shared/errors.ts'
import { AWS_TOKEN_PATH } from '../../shared/field-values.ts'
import { replaceFile } from '../durable-file.ts'
import { getSystemErrorCode } from '../files/errors.ts'
import { nullIfMissing, resolvePath } from '../files/paths.ts'

export const getTokenPath = (home: string): string => resolvePath(home, AWS_TOKEN_PATH)

/** One caller at a time. @throws ApiError and system errors; the file is then unchanged */
export async function writeToken(home: string, content: string): Promise<void> {
  const [parent, dir] = listDirectories(home)
  await createDirectory(parent)
  await createDirectory(dir)
  await chmod(dir, 0o700)
  await replaceFile(getTokenPath(home), content, { flush: true })
}

/** A missing file is no error. @throws system errors when the token may still be there */
export async function removeToken(home: string): Promise<void> {
  for (const dir of listDirectories(home)) {
    const stats = await nullIfMissing(lstat(dir))
    // The agent has written no token below anything else.
    if (!stats?.isDirectory()) return
    // The user may have made it read-only, and a copy of a box has the same modes.
    if (stats.uid === process.geteuid?.()) await chmod(dir, (stats.mode & 0o7777) | 0o700)
  }
  const path = getTokenPath(home)
  // A directory is no token.
  if (!(await nullIfMissing(lstat(path)))?.isDirectory()) await nullIfMissing(unlink(path))
  // A killed agent may have left the file that it would have renamed.
  await rm(`${path}.new`, { recursive: true, force: true })
}

const listDirectories = (home: string): readonly [parent: string, dir: string] => [
  join(home, '.boxwood'),
  join(home, '.boxwood/aws'),
]

/** A symbolic link is refused: it may lead to a directory that others can read, or to one of the agent. */
async function createDirectory(dir: string): Promise<void> {
  await mkdir(dir, { mode: 0o700 }).catch((error: unknown) => {
    if (getSystemErrorCode(error) !== 'EEXIST') throw error
  })
  const stats = await lstat(dir)
  if (!stats.isDirectory() || stats.uid !== process.geteuid?.())
    throw new ApiError(
      'invalid_path',
      `${dir} is not a directory of the box user. Rename it, and the token is written again.`,
    )
}
