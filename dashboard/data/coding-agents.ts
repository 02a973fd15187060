// The coding agents, and what has to be done before a box can run them.
import type { CodingAgents } from '../../shared/api/boxes.ts'
import type { ProviderName, ProviderReadiness, ReasoningEffort } from '../../shared/api/prompts.ts'

export const CODING_AGENTS: readonly { name: ProviderName; label: string }[] = [
  { name: 'claude', label: 'Claude Code' },
  { name: 'codex', label: 'Codex' },
  { name: 'opencode', label: 'OpenCode' },
  { name: 'pi', label: 'pi' },
]

export const REASONING_EFFORTS: readonly ReasoningEffort[] = ['low', 'medium', 'high']

/** These are installed by their first prompt. */
const INSTALLED_AUTOMATICALLY: readonly ProviderName[] = ['opencode', 'pi']

export function describeReadiness(name: ProviderName, readiness: ProviderReadiness): string {
  if (readiness === 'ready') return 'ready'
  if (readiness === 'not_signed_in') return 'installed, not signed in'
  return INSTALLED_AUTOMATICALLY.includes(name) ? 'installed by its first prompt' : 'not installed'
}

/** The first coding agent that is ready. */
export function chooseAgent(agents: CodingAgents | null): ProviderName {
  const ready = CODING_AGENTS.find(({ name }) => agents?.[name] === 'ready')
  return ready?.name ?? 'claude'
}
