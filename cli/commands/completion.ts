// box completion: prints the completion script of a shell. box __complete: lists candidates for that script.
import { Argument, type Command } from 'commander'
import { SCRIPTS, SHELLS, type Shell } from '../completion/scripts.ts'
import type { RunLocalAction } from '../connection/session.ts'
import { print } from '../output/print.ts'

export function addCompletionCommand(program: Command, runLocalAction: RunLocalAction): void {
  program
    .command('completion')
    .summary('print the completion script of a shell')
    .description(
      'Prints the script with which a shell completes commands, options, and the names of boxes, processes and sessions. ' +
        '`box install` installs the script for bash and fish.',
    )
    .addArgument(new Argument('<shell>', 'the shell').choices(SHELLS))
    .addHelpText(
      'after',
      `
Examples:
  source <(box completion bash)    in ~/.bashrc
  source <(box completion zsh)     in ~/.zshrc, after compinit
  box completion fish | source     in ~/.config/fish/config.fish`,
    )
    .action((shell: Shell) =>
      runLocalAction(async () => {
        process.stdout.write(SCRIPTS[shell])
        return undefined
      }),
    )
  program
    .command('__complete', { hidden: true })
    .argument('[words...]')
    .action((words: string[]) =>
      runLocalAction(async () => {
        const { complete } = await import('../completion/complete.ts')
        const { candidates, includesFiles } = await complete(program, words.length === 0 ? [''] : words)
        for (const { value, description } of candidates)
          print(description === '' ? value : `${value}\t${description}`)
        if (includesFiles) print(':files')
        return undefined
      }),
    )
}
