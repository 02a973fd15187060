// The links to the scripts `box` and `boxwood` in a directory of the PATH.
import {
  accessSync,
  constants,
  existsSync,
  lstatSync,
  mkdirSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { isSameFile } from '../../shared/command-name.ts'
import { boxCommand } from '../command-name.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { PROJECT_DIR } from '../project-directory.ts'

export const PROGRAMS = ['box', 'boxwood'] as const
export type Program = (typeof PROGRAMS)[number]
/** The script of a program. */
export const getScript = (program: Program): string => join(PROJECT_DIR, program)
export const SYSTEM_BIN_DIR = '/usr/local/bin'

/** The absolute directories of the PATH that are not of an npm project. */
export const listPathDirs = (): string[] =>
  (process.env.PATH ?? '').split(':').filter((dir) => dir.startsWith('/') && !dir.includes('/node_modules/'))

/** Root: for all users. Others: ~/.local/bin, unless only another directory of the home is on the PATH. */
export function getDefaultDir(): string {
  if (process.getuid?.() === 0) return SYSTEM_BIN_DIR
  const home = homedir()
  const standardDir = join(home, '.local/bin')
  const pathDirs = listPathDirs().map((dir) => resolve(dir))
  if (pathDirs.includes(standardDir)) return standardDir
  return pathDirs.find((dir) => dir.startsWith(`${home}/`) && isWritable(dir)) ?? standardDir
}

function isWritable(dir: string): boolean {
  try {
    accessSync(dir, constants.W_OK)
    return statSync(dir).isDirectory()
  } catch {
    return false
  }
}

/** Idempotent. @throws CliError for a file that is not a link to this program, unless `force` */
export function createLink(program: Program, path: string, force: boolean): void {
  if (isSameFile(path, getScript(program))) return
  const existing = describeExisting(path)
  if (existing !== null && (existing === 'a directory' || !force)) {
    const hint =
      existing === 'a directory'
        ? 'Use --dir with another directory.'
        : 'Replace it with --force, or use --dir.'
    throw new CliError(EXIT.failed, `${path} exists and is ${existing}. ${hint}`)
  }
  try {
    mkdirSync(dirname(path), { recursive: true })
    replaceWithLink(getScript(program), path)
  } catch (error) {
    throw new CliError(
      EXIT.failed,
      `Cannot create ${path}: ${getReason(error)}. Use --dir with a directory that you own.`,
    )
  }
}

function replaceWithLink(script: string, path: string): void {
  const temporaryPath = `${path}.${process.pid}`
  symlinkSync(script, temporaryPath)
  try {
    renameSync(temporaryPath, path)
  } catch (error) {
    rmSync(temporaryPath)
    throw error
  }
}

/** Returns null for a path that does not exist, and for a broken link. */
function describeExisting(path: string): string | null {
  if (!existsSync(path)) return null
  const stats = lstatSync(path)
  if (stats.isDirectory()) return 'a directory'
  return stats.isSymbolicLink() ? `a link to ${realpathSync(path)}` : 'another program'
}

/** Returns the links that were removed: in `dir`, else in each directory in which `box install` creates links. */
export function removeLinks(dir: string | undefined): string[] {
  const dirs = dir === undefined ? [...listPathDirs(), getDefaultDir()] : [resolve(dir)]
  const links = PROGRAMS.flatMap((program) =>
    [...new Set(dirs.map((linkDir) => join(linkDir, program)))].filter((path) =>
      isLinkTo(getScript(program), path),
    ),
  )
  for (const link of links) {
    try {
      rmSync(link)
    } catch (error) {
      throw new CliError(
        EXIT.failed,
        `Cannot remove ${link}: ${getReason(error)}. Run ${boxCommand()} uninstall as the user who installed it.`,
      )
    }
  }
  return links
}

/** The PATH may have directories that this user cannot read. */
function isLinkTo(script: string, path: string): boolean {
  try {
    return lstatSync(path).isSymbolicLink() && isSameFile(path, script)
  } catch {
    return false
  }
}

const getReason = (error: unknown): string => {
  const { code, message } = error as NodeJS.ErrnoException
  return code === 'EACCES' || code === 'EPERM' ? 'permission denied' : message
}
