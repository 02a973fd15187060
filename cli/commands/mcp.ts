// box mcp: serves boxes as tools to a host of models, by the Model Context Protocol.
import { Argument, type Command, Option } from 'commander'
import { createNumberParser } from '../arguments/options.ts'
import type { RunAction } from '../connection/session.ts'
import { HOSTS, type HostName } from '../mcp/hosts.ts'
import type { InstallOptions } from '../mcp/install.ts'
import type { ServeOptions } from '../mcp/serve.ts'

/** In seconds. The time limit of hosts is 60. */
const MAX_WAIT = { min: 0.1, max: 45 }

export function addMcpCommand(program: Command, runAction: RunAction): void {
  const mcp = program
    .command('mcp')
    .summary('serve boxes as tools to a coding agent, by the Model Context Protocol')
    .description(
      'Serves tools for boxes on standard input and output, by the Model Context Protocol. A host such as Claude Code starts this command. The tools are ' +
        'those that the API key allows; the options narrow them further.',
    )
    // An option after a subcommand belongs to the subcommand.
    .enablePositionalOptions()
    .helpCommand(false)
  addServeOptions(mcp)
    .addHelpText(
      'after',
      `
Examples:
  box mcp install claude
  box mcp --read-only
  box mcp --box fig --no-create

\`box docs mcp\` has the tools, and the configuration of other hosts.`,
    )
    .action((options: ServeOptions) =>
      runAction(async (session) => {
        const { serve } = await import('../mcp/serve.ts')
        return serve(session, options)
      }),
    )
  addServeOptions(
    mcp
      .command('install')
      .summary('write the configuration of a host')
      .description(
        'Adds the server to the configuration of a host, with an API key of its own that may only use boxes. Needs a sign-in with `box login`. Again, it ' +
          'replaces the key and the options.',
      )
      .addArgument(new Argument('<host>', 'the coding agent').choices(HOSTS)),
  )
    .option('--print', 'print the configuration, and change nothing')
    .addHelpText(
      'after',
      `
Examples:
  box mcp install claude
  box mcp install codex --box fig
  box mcp install vscode --print`,
    )
    .action((host: HostName, options: InstallOptions) =>
      runAction(async (session) => {
        const { install } = await import('../mcp/install.ts')
        return install(session, host, options)
      }),
    )
}

const addServeOptions = (command: Command): Command =>
  command
    .option('--read-only', 'only tools that change nothing')
    .option('--box <name>', 'only this box; can be repeated', (name: string, names: string[] = []) => [
      ...names,
      name,
    ])
    .option('--no-create', 'no tool that creates boxes')
    .option('--allow-delete', 'a tool may delete boxes')
    .option('--allow-public', 'a tool may share ports with people who are no members')
    .addOption(
      new Option(
        '--max-wait <seconds>',
        'how long a call waits for a command at most. Default: 45',
      ).argParser(createNumberParser('--max-wait', MAX_WAIT)),
    )
