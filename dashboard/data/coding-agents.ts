// The coding agents, and what has to be done before a box can run them.
import type { CodingAgents } from '../../shared/api/boxes.ts'
import type { ProviderName, ProviderReadiness, ReasoningEffort } from '../../shared/api/prompts.ts'

export type CodingAgent = {
  name: ProviderName
  label: string
  /** Null: its first prompt installs it. */
  installCommand: string | null
  /** The usual one first. */
  keys: readonly AgentKey[]
  /** What one enters in a terminal of the box to sign in without a key. */
  signIn: readonly string[]
}

export type AgentKey = {
  /** The variable that the coding agents read, which is also the name of the secret. */
  variable: string
  label: string
  /** Gets the key. */
  host: string
}

const ANTHROPIC: AgentKey = { variable: 'ANTHROPIC_API_KEY', label: 'Anthropic', host: 'api.anthropic.com' }
const OPENAI: AgentKey = { variable: 'OPENAI_API_KEY', label: 'OpenAI', host: 'api.openai.com' }
const CLAUDE: AgentKey = {
  variable: 'CLAUDE_CODE_OAUTH_TOKEN',
  label: 'Claude subscription',
  host: 'api.anthropic.com',
}
/** Of the providers of models that OpenCode and pi can use. */
const MODEL_KEYS: readonly AgentKey[] = [
  ANTHROPIC,
  OPENAI,
  { variable: 'OPENROUTER_API_KEY', label: 'OpenRouter', host: 'openrouter.ai' },
  { variable: 'DEEPSEEK_API_KEY', label: 'DeepSeek', host: 'api.deepseek.com' },
  { variable: 'GEMINI_API_KEY', label: 'Google Gemini', host: 'generativelanguage.googleapis.com' },
]

/** docs/prompts.md describes how each is installed and signed in. */
export const CODING_AGENTS: readonly CodingAgent[] = [
  {
    name: 'claude',
    label: 'Claude Code',
    installCommand: 'npm install -g @anthropic-ai/claude-code',
    keys: [ANTHROPIC, CLAUDE],
    signIn: ['claude', '/login'],
  },
  {
    name: 'codex',
    label: 'Codex',
    installCommand: 'npm install -g @openai/codex',
    keys: [OPENAI],
    signIn: ['codex login --device-auth'],
  },
  {
    name: 'opencode',
    label: 'OpenCode',
    installCommand: null,
    keys: MODEL_KEYS,
    signIn: ['opencode auth login'],
  },
  {
    name: 'pi',
    label: 'pi',
    installCommand: null,
    keys: MODEL_KEYS,
    signIn: ['pi', '/login'],
  },
]

export const getAgentLabel = (name: string): string =>
  CODING_AGENTS.find((agent) => agent.name === name)?.label ?? name

export const REASONING_EFFORTS: readonly ReasoningEffort[] = ['low', 'medium', 'high']

export function describeReadiness(
  { installCommand }: Pick<CodingAgent, 'installCommand'>,
  readiness: ProviderReadiness | undefined,
): string {
  if (readiness === undefined) return 'not reported yet'
  if (readiness === 'ready') return 'ready'
  if (readiness === 'not_signed_in') return 'not signed in'
  return installCommand === null ? 'installed by its first prompt' : 'not installed'
}

/** The first coding agent that is ready. */
export function chooseAgent(agents: CodingAgents | null): ProviderName {
  const ready = CODING_AGENTS.find(({ name }) => agents?.[name] === 'ready')
  return ready?.name ?? 'claude'
}
