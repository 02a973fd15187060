// Services whose keys people store as secrets: the variable that programs read, and the hosts that get the key.
import { CODING_AGENTS } from './coding-agents.ts'

export type SecretPreset = { variable: string; label: string; hosts: readonly string[] }

const OF_CODING_AGENTS = new Map(
  CODING_AGENTS.flatMap(({ keys }) => keys).map(({ variable, label, host }) => [
    variable,
    { variable, label, hosts: [host] },
  ]),
)

export const SECRET_PRESETS: readonly SecretPreset[] = [
  ...OF_CODING_AGENTS.values(),
  { variable: 'GITHUB_TOKEN', label: 'GitHub', hosts: ['github.com', 'api.github.com'] },
  { variable: 'GITLAB_TOKEN', label: 'GitLab', hosts: ['gitlab.com'] },
  { variable: 'NPM_TOKEN', label: 'npm', hosts: ['registry.npmjs.org'] },
  { variable: 'HF_TOKEN', label: 'Hugging Face', hosts: ['huggingface.co'] },
]
