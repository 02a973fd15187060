// Codex: command line and environment.
import {
  codexCredentialFiles,
  codexCredentialVariables,
  codexSignInHint,
  isCodexSignedIn,
} from './codex-credentials.ts'
import { mapCodexLine, resolveUnfinishedCodex } from './codex-lines.ts'
import type { CommandOptions, ModelSelection, Provider } from './types.ts'

export const codex: Provider = {
  name: 'codex',
  program: 'codex',
  installPackage: null,
  // Codex terminates its tools after SIGINT.
  interruptSignal: 'INT',
  defaultAuto: false,
  buildCommand,
  encodePrompt: (prompt) => prompt,
  mapLine: mapCodexLine,
  resolveUnfinished: resolveUnfinishedCodex,
  credentialFiles: codexCredentialFiles,
  isSignedIn: isCodexSignedIn,
  credentialVariables: codexCredentialVariables,
  signInHint: codexSignInHint,
}

/** The options precede `resume`, which does not know all of them. */
function buildCommand({ model, effort, auto, sessionId }: CommandOptions) {
  return {
    args: [
      'exec',
      '--json',
      '--skip-git-repo-check',
      // Otherwise Codex downloads plugins at each start, and sends statistics.
      '--disable',
      'plugins',
      '-c',
      'analytics.enabled=false',
      ...backendOptions(model),
      ...(model ? ['-m', model.name] : []),
      ...(effort ? ['-c', `model_reasoning_effort=${effort}`] : []),
      ...(auto ? ['--dangerously-bypass-approvals-and-sandbox'] : ['-s', 'workspace-write']),
      ...(sessionId ? ['resume', sessionId] : []),
      '-',
    ],
    env: {},
  }
}

const OPENROUTER =
  'model_providers.openrouter={name="OpenRouter",base_url="https://openrouter.ai/api/v1",env_key="OPENROUTER_API_KEY",wire_api="responses"}'

function backendOptions(model: ModelSelection | null): string[] {
  if (model?.backend === 'amazon-bedrock') return ['-c', 'model_provider=amazon-bedrock']
  if (model?.backend === 'openrouter') return ['-c', OPENROUTER, '-c', 'model_provider=openrouter']
  return []
}
