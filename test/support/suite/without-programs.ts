// Hides the optional programs of this machine from a test file, as on a machine on which only Node and the programs of a
// minimal Debian system are installed.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, realpathSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { OPTIONAL_PROGRAMS } from '../requires.ts'

const NAMES = OPTIONAL_PROGRAMS.map((name) => name.replace(/[.+]/g, '\\$&'))
/** Also with a version after the name: gcc-14. */
const OPTIONAL = new RegExp(`^(${NAMES.join('|')})(-[\\d.]+)?$`)

/** The coordinator finds the programs of boxes here. */
const SYSTEM_DIRS = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin']

/** Directories of programs outside the PATH. */
const HIDDEN_DIRS = ['/usr/lib/postgresql', '/usr/share/bash-completion', '/usr/libexec/incus']

export type HiddenPrograms = {
  /** The arguments before a command that finds no optional program. */
  prefix: string[]
}

/**
 * The command gets a mount namespace of its own, with overlays on the directories of programs. Other processes of the
 * machine are not affected.
 * @param dir of files that must exist while the commands run
 */
export function hidePrograms(dir: string): HiddenPrograms | { skipReason: string } {
  mkdirSync(join(dir, 'layers'), { recursive: true })
  const script = join(dir, 'hide-programs.sh')
  writeFileSync(script, createScript(join(dir, 'layers')))
  const prefix = ['unshare', '--mount', '--propagation', 'private', 'sh', script]
  const { status, stderr } = spawnSync(prefix[0] ?? '', [...prefix.slice(1), 'true'], { encoding: 'utf8' })
  if (status === 0) return { prefix }
  return { skipReason: `optional programs cannot be hidden: ${stderr?.trim() || 'unshare is not installed'}` }
}

function createScript(layers: string): string {
  const dirs = [...SYSTEM_DIRS, ...(process.env.PATH ?? '').split(delimiter)]
    .filter((dir) => existsSync(dir))
    .map((dir) => realpathSync(dir))
  const overlays = [...new Set(dirs)].map((dir, index) => {
    const layer = join(layers, String(index))
    const hidden = readdirSync(dir).filter((name) => OPTIONAL.test(name))
    if (hidden.length === 0) return ''
    // A character device 0/0 in the upper layer hides the file of the lower layer.
    const whiteouts = hidden.map((name) => `mknod '${layer}/upper/${name}' c 0 0\n`).join('')
    const options = `lowerdir=${dir},upperdir=${layer}/upper,workdir=${layer}/work`
    return `mkdir -p '${layer}/upper' '${layer}/work'\n${whiteouts}mount -t overlay overlay -o '${options}' '${dir}'\n`
  })
  const empty = HIDDEN_DIRS.filter((dir) => existsSync(dir)).map((dir) => `mount -t tmpfs tmpfs '${dir}'\n`)
  return `set -eu\nmount -t tmpfs tmpfs '${layers}'\n${overlays.join('')}${empty.join('')}exec "$@"\n`
}
