// All providers by name.
import type { ProviderName } from '../../../shared/api/prompts.ts'
import { claude } from './claude.ts'
import { codex } from './codex.ts'
import { opencode } from './opencode.ts'
import { pi } from './pi.ts'
import type { Provider } from './types.ts'

export const providers: Readonly<Record<ProviderName, Provider>> = { claude, codex, opencode, pi }
