// Claude Code: command line and environment.
import type { Backend } from '../../../shared/field-values.ts'
import { claudeCredentialFiles, claudeSignInHint, isClaudeSignedIn } from './claude-credentials.ts'
import { mapClaudeLine, resolveUnfinishedClaude } from './claude-lines.ts'
import type { CommandOptions, Provider } from './types.ts'

export const claude: Provider = {
  name: 'claude',
  program: 'claude',
  installPackage: null,
  // Claude Code terminates its tools after SIGINT.
  interruptSignal: 'INT',
  defaultAuto: false,
  buildCommand,
  encodePrompt,
  mapLine: mapClaudeLine,
  resolveUnfinished: resolveUnfinishedClaude,
  credentialFiles: claudeCredentialFiles,
  isSignedIn: isClaudeSignedIn,
  credentialVariables: async () => ({}),
  signInHint: claudeSignInHint,
}

function buildCommand({ model, effort, auto, sessionId, env, tmpDir, isRoot }: CommandOptions) {
  return {
    args: [
      '-p',
      '--output-format',
      'stream-json',
      '--verbose',
      ...(model ? ['--model', model.name] : []),
      ...(effort ? ['--effort', effort] : []),
      ...(auto ? ['--dangerously-skip-permissions'] : ['--permission-mode', 'acceptEdits']),
      ...(sessionId ? ['--resume', sessionId] : []),
    ],
    env: {
      // Without this variable, Claude Code connects to api.anthropic.com even with another base URL.
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      // Each session leaves files in this directory. TMPDIR would also apply to the tools, whose background processes
      // outlive the run.
      CLAUDE_CODE_TMPDIR: tmpDir,
      // As root, Claude Code refuses to skip permissions outside a sandbox.
      ...(auto && isRoot ? { IS_SANDBOX: '1' } : {}),
      ...(model?.backend ? backendVariables(model.backend, env) : {}),
    },
  }
}

function backendVariables(backend: Backend, env: CommandOptions['env']): Record<string, string> {
  if (backend === 'amazon-bedrock') return { CLAUDE_CODE_USE_BEDROCK: '1' }
  const [url, token] =
    backend === 'openrouter'
      ? ['https://openrouter.ai/api', env.OPENROUTER_API_KEY]
      : ['https://api.deepseek.com/anthropic', env.DEEPSEEK_API_KEY]
  return {
    ANTHROPIC_BASE_URL: url,
    ANTHROPIC_AUTH_TOKEN: token ?? '',
    // Otherwise Claude Code sends the key of Anthropic to the backend.
    ANTHROPIC_API_KEY: '',
    CLAUDE_CODE_USE_BEDROCK: '',
    CLAUDE_CODE_USE_VERTEX: '',
  }
}

/** At the start of the input, a slash is a command of Claude Code, such as /clear. After a space it is text. */
function encodePrompt(prompt: string): string {
  return prompt.startsWith('/') ? ` ${prompt}` : prompt
}
