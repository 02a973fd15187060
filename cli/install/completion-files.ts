// The files from which bash, zsh and fish load the completion of `box`.
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { SCRIPT_MARKER, SCRIPTS, type Shell } from '../completion/scripts.ts'

type CompletionFile = {
  shell: Shell
  path: string /** Whether the shell is installed and reads the file. */
  isUsed: boolean
}

/** zsh has no directory in the home from which it loads completions. */
function listUserFiles(): CompletionFile[] {
  const dataDir = process.env.XDG_DATA_HOME || join(homedir(), '.local/share')
  const configDir = process.env.XDG_CONFIG_HOME || join(homedir(), '.config')
  const bashDir = join(dataDir, 'bash-completion')
  const hasBashCompletion = existsSync(bashDir) || existsSync('/usr/share/bash-completion/bash_completion')
  return [
    { shell: 'bash', path: join(bashDir, 'completions/box'), isUsed: hasBashCompletion },
    {
      shell: 'fish',
      path: join(configDir, 'fish/completions/box.fish'),
      isUsed: existsSync(join(configDir, 'fish')),
    },
  ]
}

/** The files for all users of the machine. */
const SYSTEM_FILES: CompletionFile[] = [
  {
    shell: 'bash',
    path: '/usr/local/share/bash-completion/completions/box',
    isUsed: existsSync('/usr/share/bash-completion/bash_completion'),
  },
  {
    shell: 'zsh',
    path: '/usr/local/share/zsh/site-functions/_box',
    isUsed: existsSync('/usr/local/share/zsh/site-functions'),
  },
  {
    shell: 'fish',
    path: '/usr/local/share/fish/vendor_completions.d/box.fish',
    isUsed: existsSync('/usr/share/fish'),
  },
]

const listFiles = (isSystem: boolean): CompletionFile[] => (isSystem ? SYSTEM_FILES : listUserFiles())

/** Returns the paths. A file of another program is left unchanged, and so is a file that cannot be written. */
export function writeCompletionFiles(isSystem: boolean): { shell: Shell; path: string }[] {
  return listFiles(isSystem).filter(({ shell, path, isUsed }) => {
    if (!isUsed || (existsSync(path) && !isOwnFile(path))) return false
    try {
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, SCRIPTS[shell])
      return true
    } catch {
      return false
    }
  })
}

/** Returns the paths of the files that were removed. */
export function removeCompletionFiles(isSystem: boolean): string[] {
  const paths = listFiles(isSystem)
    .map(({ path }) => path)
    .filter((path) => existsSync(path) && isOwnFile(path))
  for (const path of paths) rmSync(path)
  return paths
}

function isOwnFile(path: string): boolean {
  try {
    return readFileSync(path, 'utf8').includes(SCRIPT_MARKER)
  } catch {
    return false
  }
}
