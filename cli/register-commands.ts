// The commands of box, in the groups and the order of `box help --all`. Imports only the modules of the commands that are needed.
import type { Command } from 'commander'
import type { RunAction, RunLocalAction } from './connection/session.ts'

export type Actions = { runAction: RunAction; runLocalAction: RunLocalAction }

type CommandModule = {
  /** The names of its commands, with their aliases. */
  names: readonly string[]
  load: () => Promise<(program: Command, actions: Actions) => void>
}

const runBy =
  <K extends keyof Actions>(key: K) =>
  (
    names: string | string[],
    load: () => Promise<(program: Command, run: Actions[K]) => void>,
  ): CommandModule => ({
    names: [names].flat(),
    load: async () => {
      const addCommand = await load()
      return (program, actions) => addCommand(program, actions[key])
    },
  })

const remote = runBy('runAction')
/** Its commands work without a coordinator. */
const local = runBy('runLocalAction')

const GROUPS: Record<string, readonly CommandModule[]> = {
  'Boxes:': [
    remote('create', async () => (await import('./commands/create.ts')).addCreateCommand),
    remote(['ls', 'list'], async () => (await import('./commands/ls.ts')).addLsCommand),
    remote('show', async () => (await import('./commands/show.ts')).addShowCommand),
    remote('stop', async () => (await import('./commands/stop.ts')).addStopCommand),
    remote(['suspend', 'pause'], async () => (await import('./commands/suspend.ts')).addSuspendCommand),
    remote(['wake', 'start'], async () => (await import('./commands/wake.ts')).addWakeCommand),
    remote('restart', async () => (await import('./commands/restart.ts')).addRestartCommand),
    remote(
      ['rm', 'delete', 'destroy', 'remove'],
      async () => (await import('./commands/rm.ts')).addRmCommand,
    ),
    remote('rename', async () => (await import('./commands/rename.ts')).addRenameCommand),
    remote('label', async () => (await import('./commands/label.ts')).addLabelCommand),
    remote('give', async () => (await import('./commands/give.ts')).addGiveCommand),
    remote('resize', async () => (await import('./commands/resize.ts')).addResizeCommand),
    remote('move', async () => (await import('./commands/move.ts')).addMoveCommand),
    remote('set', async () => (await import('./commands/set.ts')).addSetCommand),
    remote('env', async () => (await import('./commands/env.ts')).addEnvCommand),
    remote('events', async () => (await import('./commands/events.ts')).addEventsCommand),
    remote('wait', async () => (await import('./commands/wait.ts')).addWaitCommand),
    remote('machine', async () => (await import('./commands/machine.ts')).addMachineCommand),
  ],
  'Images and regions:': [
    remote('images', async () => (await import('./commands/images.ts')).addImagesCommand),
    remote('regions', async () => (await import('./commands/regions.ts')).addRegionsCommand),
  ],
  'Environments and secrets:': [
    remote(
      ['environments', 'envs'],
      async () => (await import('./commands/environments.ts')).addEnvironmentsCommand,
    ),
    remote('repos', async () => (await import('./commands/repos.ts')).addReposCommand),
    remote('secrets', async () => (await import('./commands/secrets.ts')).addSecretsCommand),
    remote(['mount', 'unmount'], async () => (await import('./commands/mount.ts')).addMountCommands),
    remote('mounts', async () => (await import('./commands/mounts.ts')).addMountsCommand),
    remote('aws', async () => (await import('./commands/aws.ts')).addAwsCommand),
  ],
  'Snapshots:': [
    remote('fork', async () => (await import('./commands/fork.ts')).addForkCommand),
    remote('snapshot', async () => (await import('./commands/snapshot.ts')).addSnapshotCommand),
    remote('snapshots', async () => (await import('./commands/snapshots.ts')).addSnapshotsCommand),
    remote('restore', async () => (await import('./commands/restore.ts')).addRestoreCommand),
    remote('template', async () => (await import('./commands/template.ts')).addTemplateCommand),
    remote('templates', async () => (await import('./commands/templates.ts')).addTemplatesCommand),
  ],
  'Commands and processes:': [
    remote('exec', async () => (await import('./commands/exec.ts')).addExecCommand),
    remote('run', async () => (await import('./commands/run.ts')).addRunCommand),
    remote('ps', async () => (await import('./commands/ps.ts')).addPsCommand),
    remote('logs', async () => (await import('./commands/logs.ts')).addLogsCommand),
    remote('kill', async () => (await import('./commands/kill.ts')).addKillCommand),
    remote('history', async () => (await import('./commands/history.ts')).addHistoryCommand),
    remote('output', async () => (await import('./commands/output.ts')).addOutputCommand),
  ],
  'Coding agents:': [
    remote('prompt', async () => (await import('./commands/prompt.ts')).addPromptCommand),
    remote('prompts', async () => (await import('./commands/prompts.ts')).addPromptsCommand),
    remote(
      'conversations',
      async () => (await import('./commands/conversations.ts')).addConversationsCommand,
    ),
    remote('mcp', async () => (await import('./commands/mcp.ts')).addMcpCommand),
    remote('interrupt', async () => (await import('./commands/interrupt.ts')).addInterruptCommand),
  ],
  'Monitoring:': [
    remote('top', async () => (await import('./commands/top.ts')).addTopCommand),
    remote('metrics', async () => (await import('./commands/metrics.ts')).addMetricsCommand),
    remote('ps-at', async () => (await import('./commands/ps-at.ts')).addPsAtCommand),
  ],
  'Ports:': [
    remote('ports', async () => (await import('./commands/ports.ts')).addPortsCommand),
    remote('share', async () => (await import('./commands/share.ts')).addShareCommand),
    remote('shares', async () => (await import('./commands/shares.ts')).addSharesCommand),
    remote('unshare', async () => (await import('./commands/unshare.ts')).addUnshareCommand),
    remote('forward', async () => (await import('./commands/forward.ts')).addForwardCommand),
  ],
  'Terminals and files:': [
    remote(['ssh', 'shell'], async () => (await import('./commands/ssh.ts')).addSshCommand),
    remote('attach', async () => (await import('./commands/attach.ts')).addAttachCommand),
    remote('sessions', async () => (await import('./commands/sessions.ts')).addSessionsCommand),
    remote('desktop', async () => (await import('./commands/desktop.ts')).addDesktopCommand),
    remote(['files', 'file'], async () => (await import('./commands/files.ts')).addFilesCommand),
    remote('cp', async () => (await import('./commands/cp.ts')).addCpCommand),
    remote('ssh-config', async () => (await import('./commands/ssh-config.ts')).addSshConfigCommand),
    remote('ssh-proxy', async () => (await import('./commands/ssh-proxy.ts')).addSshProxyCommand),
  ],
  'Coordinator:': [
    local('up', async () => (await import('./commands/up.ts')).addUpCommand),
    local('down', async () => (await import('./commands/down.ts')).addDownCommand),
    local('status', async () => (await import('./commands/status.ts')).addStatusCommand),
    local('backup', async () => (await import('./commands/backup.ts')).addBackupCommand),
    local('upgrade', async () => (await import('./commands/upgrade.ts')).addUpgradeCommand),
    local('open', async () => (await import('./commands/open.ts')).addOpenCommand),
  ],
  'Access:': [
    local('login', async () => (await import('./commands/login.ts')).addLoginCommand),
    local('logout', async () => (await import('./commands/logout.ts')).addLogoutCommand),
    local('use', async () => (await import('./commands/use.ts')).addUseCommand),
    remote(['me', 'whoami'], async () => (await import('./commands/me.ts')).addMeCommand),
    remote('profile', async () => (await import('./commands/profile.ts')).addProfileCommand),
    remote('keys', async () => (await import('./commands/keys.ts')).addKeysCommand),
    remote('members', async () => (await import('./commands/members.ts')).addMembersCommand),
    remote('workspace', async () => (await import('./commands/workspace.ts')).addWorkspaceCommand),
    remote('policies', async () => (await import('./commands/policies.ts')).addPoliciesCommand),
    remote('agents', async () => (await import('./commands/agents.ts')).addAgentsCommand),
    remote('audit', async () => (await import('./commands/audit.ts')).addAuditCommand),
    remote('federation', async () => (await import('./commands/federation.ts')).addFederationCommand),
  ],
  'Team and billing:': [
    remote('team', async () => (await import('./commands/team.ts')).addTeamCommand),
    remote('billing', async () => (await import('./commands/billing.ts')).addBillingCommand),
    remote('usage', async () => (await import('./commands/usage.ts')).addUsageCommand),
  ],
  'Installation and help:': [
    local(['install', 'uninstall'], async () => (await import('./commands/install.ts')).addInstallCommands),
    local(
      ['completion', '__complete'],
      async () => (await import('./commands/completion.ts')).addCompletionCommand,
    ),
    local('doctor', async () => (await import('./commands/doctor.ts')).addDoctorCommand),
    local('version', async () => (await import('./commands/version.ts')).addVersionCommand),
    local('skill', async () => (await import('./commands/skill.ts')).addSkillCommand),
    local('docs', async () => (await import('./commands/docs.ts')).addDocsCommand),
    local('help', async () => (await import('./commands/help.ts')).addHelpCommand),
  ],
}

const NAMES = new Set(
  Object.values(GROUPS)
    .flat()
    .flatMap(({ names }) => names),
)

export const isCommandName = (word: string): boolean => NAMES.has(word)

/** @param names of commands; null adds all commands */
export async function registerCommands(
  program: Command,
  actions: Actions,
  names: readonly string[] | null,
): Promise<void> {
  const isNeeded = (module: CommandModule) =>
    names === null || module.names.some((name) => names.includes(name))
  const groups = Object.entries(GROUPS).map(async ([title, modules]) => ({
    title,
    commands: await Promise.all(modules.filter(isNeeded).map(({ load }) => load())),
  }))
  for (const { title, commands } of await Promise.all(groups)) {
    program.commandsGroup(title)
    for (const addCommand of commands) addCommand(program, actions)
  }
}
