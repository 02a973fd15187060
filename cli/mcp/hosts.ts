// The configuration files of hosts: where they are, and how they name a server.
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { Environment } from '../connection/find-coordinator.ts'

export const HOSTS = ['claude', 'codex', 'opencode', 'cursor', 'vscode'] as const
export type HostName = (typeof HOSTS)[number]

/** The command that a host starts. */
export type ServerCommand = { command: string; args: string[]; env: Record<string, string> }

export type Host = {
  /** For people. */
  title: string
  format: 'json' | 'toml'
  getFile(env: Environment, home: string): string
  /** The fields above the entry of a server. */
  path: readonly string[]
  toEntry(server: ServerCommand): Record<string, unknown>
}

/** The name of the server in each configuration. */
export const SERVER_NAME = 'boxwood'

/** Hosts that have a setting for it wait for longer than a call takes. */
const TIMEOUT_SECONDS = 90

const toStdio = (server: ServerCommand) => ({ type: 'stdio', ...server })

const getConfigDir = (env: Environment, home: string): string =>
  env.XDG_CONFIG_HOME?.startsWith('/') ? env.XDG_CONFIG_HOME : join(home, '.config')

export const HOST_FILES: Readonly<Record<HostName, Host>> = {
  claude: {
    title: 'Claude Code',
    format: 'json',
    getFile: (env, home) => join(env.CLAUDE_CONFIG_DIR || home, '.claude.json'),
    path: ['mcpServers'],
    toEntry: toStdio,
  },
  codex: {
    title: 'Codex',
    format: 'toml',
    getFile: (env, home) => join(env.CODEX_HOME || join(home, '.codex'), 'config.toml'),
    path: ['mcp_servers'],
    toEntry: (server) => ({ ...server, tool_timeout_sec: TIMEOUT_SECONDS }),
  },
  opencode: {
    title: 'OpenCode',
    format: 'json',
    getFile: (env, home) => join(getConfigDir(env, home), 'opencode/opencode.json'),
    path: ['mcp'],
    toEntry: ({ command, args, env }) => ({
      type: 'local',
      command: [command, ...args],
      environment: env,
      enabled: true,
      timeout: TIMEOUT_SECONDS * 1000,
    }),
  },
  cursor: {
    title: 'Cursor',
    format: 'json',
    getFile: (_env, home) => join(home, '.cursor/mcp.json'),
    path: ['mcpServers'],
    toEntry: (server) => ({ ...server }),
  },
  vscode: {
    title: 'VS Code',
    format: 'json',
    getFile: (env, home) =>
      process.platform === 'darwin'
        ? join(home, 'Library/Application Support/Code/User/mcp.json')
        : join(getConfigDir(env, home), 'Code/User/mcp.json'),
    path: ['servers'],
    toEntry: toStdio,
  },
}

export const getHostFile = ({ getFile }: Host, env: Environment): string => getFile(env, homedir())
