// Adds all commands to the program, in the groups and the order of `box --help`.
import type { Command } from 'commander'
import { addAttachCommand } from './commands/attach.ts'
import { addCompletionCommand } from './commands/completion.ts'
import { addCpCommand } from './commands/cp.ts'
import { addCreateCommand } from './commands/create.ts'
import { addDocsCommand } from './commands/docs.ts'
import { addDoctorCommand } from './commands/doctor.ts'
import { addDownCommand } from './commands/down.ts'
import { addExecCommand } from './commands/exec.ts'
import { addHistoryCommand } from './commands/history.ts'
import { addInstallCommands } from './commands/install.ts'
import { addKillCommand } from './commands/kill.ts'
import { addLogsCommand } from './commands/logs.ts'
import { addLsCommand } from './commands/ls.ts'
import { addMeCommand } from './commands/me.ts'
import { addOpenCommand } from './commands/open.ts'
import { addOutputCommand } from './commands/output.ts'
import { addPsCommand } from './commands/ps.ts'
import { addRestartCommand } from './commands/restart.ts'
import { addRmCommand } from './commands/rm.ts'
import { addRunCommand } from './commands/run.ts'
import { addSessionsCommand } from './commands/sessions.ts'
import { addShowCommand } from './commands/show.ts'
import { addSshCommand } from './commands/ssh.ts'
import { addSshConfigCommand } from './commands/ssh-config.ts'
import { addSshProxyCommand } from './commands/ssh-proxy.ts'
import { addStatusCommand } from './commands/status.ts'
import { addSuspendCommand } from './commands/suspend.ts'
import { addUpCommand } from './commands/up.ts'
import { addVersionCommand } from './commands/version.ts'
import { addWakeCommand } from './commands/wake.ts'
import type { RunAction, RunLocalAction } from './session.ts'

export function registerCommands(
  program: Command,
  runAction: RunAction,
  runLocalAction: RunLocalAction,
): void {
  const add = (...commands: ((program: Command, run: RunAction) => void)[]) => {
    for (const addCommand of commands) addCommand(program, runAction)
  }
  const addLocal = (...commands: ((program: Command, run: RunLocalAction) => void)[]) => {
    for (const addCommand of commands) addCommand(program, runLocalAction)
  }
  program.commandsGroup('Boxes:')
  add(addCreateCommand, addLsCommand, addShowCommand)
  add(addSuspendCommand, addWakeCommand, addRestartCommand, addRmCommand)
  program.commandsGroup('Commands and processes:')
  add(addExecCommand, addRunCommand, addPsCommand, addLogsCommand, addKillCommand)
  add(addHistoryCommand, addOutputCommand)
  program.commandsGroup('Terminals and files:')
  add(addSshCommand, addAttachCommand, addSessionsCommand, addCpCommand)
  add(addSshConfigCommand, addSshProxyCommand)
  program.commandsGroup('Coordinator:')
  addLocal(addUpCommand, addDownCommand, addStatusCommand, addOpenCommand)
  add(addMeCommand)
  program.commandsGroup('Installation and help:')
  addLocal(addInstallCommands, addCompletionCommand, addDoctorCommand, addVersionCommand, addDocsCommand)
  program.helpCommand('help [command]', 'show help for a command')
}
