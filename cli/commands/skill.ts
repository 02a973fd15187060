// box skill: the instructions for coding agents that have a shell.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import type { Command } from 'commander'
import { boxCommand } from '../command-name.ts'
import type { RunLocalAction } from '../connection/session.ts'
import { print } from '../output/print.ts'
import { PROJECT_DIR } from '../project-directory.ts'

const SOURCE = join(PROJECT_DIR, 'docs/skill/SKILL.md')
/** Claude Code reads the first one; Codex, OpenCode and pi read the second one. */
const DIRECTORIES = ['.claude/skills', '.agents/skills']

export function addSkillCommand(program: Command, runLocalAction: RunLocalAction): void {
  const skill = program
    .command('skill')
    .summary('print or install the instructions for coding agents')
    .description(
      'Prints a skill: a file that says to a coding agent with a shell how to work with boxes. Agents read it when they need it, which costs less than tools of an MCP server.',
    )
    .addHelpText('after', '\nExamples:\n  box skill install\n  box skill > SKILL.md')
    .action(() => runLocalAction(async () => void process.stdout.write(readFileSync(SOURCE, 'utf8'))))
  skill
    .command('install')
    .summary('install it for Claude Code, Codex, OpenCode and pi')
    .description(
      'Writes the skill where Claude Code, Codex, OpenCode and pi find it: into .claude/skills/boxwood and .agents/skills/boxwood of your home directory. Replaces an earlier version.',
    )
    .option('--project', 'write into the current directory, for this project only')
    .action(({ project = false }: { project?: boolean }) => runLocalAction(async () => install(project)))
}

function install(isProject: boolean): undefined {
  const root = isProject ? process.cwd() : homedir()
  const text = readFileSync(SOURCE, 'utf8')
  for (const directory of DIRECTORIES) {
    const file = join(root, directory, 'boxwood/SKILL.md')
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
    print(isProject ? relative(root, file) : file)
  }
  process.stderr.write(
    `Start a new session of the coding agent to use it. \`rm\` of these files removes it. \`${boxCommand()} skill\` prints it.\n`,
  )
}
