// The lines that a user adds to the startup file of the shell.

import { homedir } from 'node:os'
import { basename } from 'node:path'
import { shellQuote } from '../../shared/shell-quote.ts'

export type StartupLine = { file: string; line: string }

/** The name of the user's shell, such as zsh. */
export const getUserShell = (): string => basename(process.env.SHELL || 'sh')

/** Puts `dir` on the PATH. */
export function getPathLine(dir: string): StartupLine {
  const home = homedir()
  const isSimple = dir.startsWith(`${home}/`) && shellQuote(dir) === dir
  const line = isSimple
    ? `export PATH="$HOME${dir.slice(home.length)}:$PATH"`
    : `export PATH=${shellQuote(dir)}:"$PATH"`
  switch (getUserShell()) {
    case 'bash':
      return { file: '~/.bashrc', line }
    case 'zsh':
      return { file: '~/.zshrc', line }
    case 'fish':
      return { file: '~/.config/fish/config.fish', line: `fish_add_path ${shellQuote(dir)}` }
    default:
      return { file: '~/.profile', line }
  }
}

/** Loads the completion in the user's shell; null: no script for this shell. */
export function getCompletionLine(): StartupLine | null {
  const shell = getUserShell()
  if (shell === 'bash') return { file: '~/.bashrc', line: 'source <(box completion bash)' }
  if (shell === 'zsh') return { file: '~/.zshrc', line: 'source <(box completion zsh)' }
  if (shell !== 'fish') return null
  return { file: '~/.config/fish/config.fish', line: 'box completion fish | source' }
}
