// Adds all commands to the program, in the groups and the order of `box --help`.
import type { Command } from 'commander'
import { addAgentsCommand } from './commands/agents.ts'
import { addAttachCommand } from './commands/attach.ts'
import { addAuditCommand } from './commands/audit.ts'
import { addCompletionCommand } from './commands/completion.ts'
import { addConversationsCommand } from './commands/conversations.ts'
import { addCpCommand } from './commands/cp.ts'
import { addCreateCommand } from './commands/create.ts'
import { addDocsCommand } from './commands/docs.ts'
import { addDoctorCommand } from './commands/doctor.ts'
import { addDownCommand } from './commands/down.ts'
import { addEnvCommand } from './commands/env.ts'
import { addEventsCommand } from './commands/events.ts'
import { addExecCommand } from './commands/exec.ts'
import { addForkCommand } from './commands/fork.ts'
import { addHistoryCommand } from './commands/history.ts'
import { addInstallCommands } from './commands/install.ts'
import { addInterruptCommand } from './commands/interrupt.ts'
import { addKeysCommand } from './commands/keys.ts'
import { addKillCommand } from './commands/kill.ts'
import { addLoginCommand } from './commands/login.ts'
import { addLogoutCommand } from './commands/logout.ts'
import { addLogsCommand } from './commands/logs.ts'
import { addLsCommand } from './commands/ls.ts'
import { addMachineCommand } from './commands/machine.ts'
import { addMeCommand } from './commands/me.ts'
import { addMembersCommand } from './commands/members.ts'
import { addMetricsCommand } from './commands/metrics.ts'
import { addMoveCommand } from './commands/move.ts'
import { addOpenCommand } from './commands/open.ts'
import { addOutputCommand } from './commands/output.ts'
import { addPoliciesCommand } from './commands/policies.ts'
import { addPortsCommand } from './commands/ports.ts'
import { addPromptCommand } from './commands/prompt.ts'
import { addPromptsCommand } from './commands/prompts.ts'
import { addPsCommand } from './commands/ps.ts'
import { addPsAtCommand } from './commands/ps-at.ts'
import { addResizeCommand } from './commands/resize.ts'
import { addRestartCommand } from './commands/restart.ts'
import { addRestoreCommand } from './commands/restore.ts'
import { addRmCommand } from './commands/rm.ts'
import { addRunCommand } from './commands/run.ts'
import { addSessionsCommand } from './commands/sessions.ts'
import { addSetCommand } from './commands/set.ts'
import { addShowCommand } from './commands/show.ts'
import { addSnapshotCommand } from './commands/snapshot.ts'
import { addSnapshotsCommand } from './commands/snapshots.ts'
import { addSshCommand } from './commands/ssh.ts'
import { addSshConfigCommand } from './commands/ssh-config.ts'
import { addSshProxyCommand } from './commands/ssh-proxy.ts'
import { addStatusCommand } from './commands/status.ts'
import { addStopCommand } from './commands/stop.ts'
import { addSuspendCommand } from './commands/suspend.ts'
import { addTemplateCommand } from './commands/template.ts'
import { addTemplatesCommand } from './commands/templates.ts'
import { addTopCommand } from './commands/top.ts'
import { addUpCommand } from './commands/up.ts'
import { addUseCommand } from './commands/use.ts'
import { addVersionCommand } from './commands/version.ts'
import { addWaitCommand } from './commands/wait.ts'
import { addWakeCommand } from './commands/wake.ts'
import { addWorkspaceCommand } from './commands/workspace.ts'
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
  add(addStopCommand, addSuspendCommand, addWakeCommand, addRestartCommand, addRmCommand)
  add(addResizeCommand, addMoveCommand, addSetCommand, addEnvCommand, addEventsCommand, addWaitCommand)
  add(addMachineCommand)
  program.commandsGroup('Snapshots:')
  add(addForkCommand, addSnapshotCommand, addSnapshotsCommand, addRestoreCommand)
  add(addTemplateCommand, addTemplatesCommand)
  program.commandsGroup('Commands and processes:')
  add(addExecCommand, addRunCommand, addPsCommand, addLogsCommand, addKillCommand)
  add(addHistoryCommand, addOutputCommand)
  program.commandsGroup('Coding agents:')
  add(addPromptCommand, addPromptsCommand, addConversationsCommand, addInterruptCommand)
  program.commandsGroup('Monitoring:')
  add(addTopCommand, addMetricsCommand, addPsAtCommand, addPortsCommand)
  program.commandsGroup('Terminals and files:')
  add(addSshCommand, addAttachCommand, addSessionsCommand, addCpCommand)
  add(addSshConfigCommand, addSshProxyCommand)
  program.commandsGroup('Coordinator:')
  addLocal(addUpCommand, addDownCommand, addStatusCommand, addOpenCommand)
  program.commandsGroup('Access:')
  addLocal(addLoginCommand, addLogoutCommand, addUseCommand)
  add(addMeCommand, addKeysCommand, addMembersCommand, addWorkspaceCommand)
  add(addPoliciesCommand, addAgentsCommand, addAuditCommand)
  program.commandsGroup('Installation and help:')
  addLocal(addInstallCommands, addCompletionCommand, addDoctorCommand, addVersionCommand, addDocsCommand)
  program.helpCommand('help [command]', 'show help for a command')
}
