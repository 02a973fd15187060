// Secrets with a well-known name. The channels of an environment mount the secrets of these names on new boxes, and the box
// command suggests their hosts.
import type { CredentialChannel } from './api/environments.ts'

export type KnownSecret = {
  /** The channel of an environment that mounts the secret. */
  channel: CredentialChannel
  /** The hosts to which the clients of the provider send the key. */
  hosts: readonly string[]
  description: string
}

const GITHUB: KnownSecret = {
  channel: 'git',
  hosts: ['github.com', 'api.github.com', 'uploads.github.com', 'codeload.github.com'],
  description: 'token of GitHub, for git and gh',
}

/** By the name of the secret, which is also the variable that its clients read. */
export const KNOWN_SECRETS: Readonly<Record<string, KnownSecret>> = {
  GITHUB_TOKEN: GITHUB,
  GH_TOKEN: GITHUB,
  GITLAB_TOKEN: { channel: 'git', hosts: ['gitlab.com'], description: 'token of GitLab, for git and glab' },
  BITBUCKET_TOKEN: {
    channel: 'git',
    hosts: ['bitbucket.org', 'api.bitbucket.org'],
    description: 'token of Bitbucket',
  },
  CODEBERG_TOKEN: { channel: 'git', hosts: ['codeberg.org'], description: 'token of Codeberg' },
  NPM_TOKEN: { channel: 'git', hosts: ['registry.npmjs.org'], description: 'token of the npm registry' },

  HCLOUD_TOKEN: { channel: 'cloud', hosts: ['api.hetzner.cloud'], description: 'token of Hetzner Cloud' },
  DIGITALOCEAN_ACCESS_TOKEN: {
    channel: 'cloud',
    hosts: ['api.digitalocean.com'],
    description: 'token of DigitalOcean',
  },
  CLOUDFLARE_API_TOKEN: {
    channel: 'cloud',
    hosts: ['api.cloudflare.com'],
    description: 'token of Cloudflare',
  },
  FLY_API_TOKEN: {
    channel: 'cloud',
    hosts: ['api.fly.io', 'api.machines.dev'],
    description: 'token of Fly.io',
  },
  VERCEL_TOKEN: { channel: 'cloud', hosts: ['api.vercel.com'], description: 'token of Vercel' },
  NETLIFY_AUTH_TOKEN: { channel: 'cloud', hosts: ['api.netlify.com'], description: 'token of Netlify' },
  LINODE_TOKEN: { channel: 'cloud', hosts: ['api.linode.com'], description: 'token of Linode' },
  VULTR_API_KEY: { channel: 'cloud', hosts: ['api.vultr.com'], description: 'key of Vultr' },
  HEROKU_API_KEY: { channel: 'cloud', hosts: ['api.heroku.com'], description: 'key of Heroku' },

  ANTHROPIC_API_KEY: {
    channel: 'codingAgents',
    hosts: ['api.anthropic.com'],
    description: 'key of Anthropic, for Claude Code, OpenCode and pi',
  },
  ANTHROPIC_AUTH_TOKEN: {
    channel: 'codingAgents',
    hosts: ['api.anthropic.com'],
    description: 'token of Anthropic, for Claude Code',
  },
  CLAUDE_CODE_OAUTH_TOKEN: {
    channel: 'codingAgents',
    hosts: ['api.anthropic.com'],
    description: 'token of a Claude subscription, for Claude Code',
  },
  OPENAI_API_KEY: {
    channel: 'codingAgents',
    hosts: ['api.openai.com'],
    description: 'key of OpenAI, for Codex, OpenCode and pi',
  },
  CODEX_API_KEY: {
    channel: 'codingAgents',
    hosts: ['api.openai.com'],
    description: 'key of OpenAI, for Codex',
  },
  OPENROUTER_API_KEY: {
    channel: 'codingAgents',
    hosts: ['openrouter.ai'],
    description: 'key of OpenRouter, for OpenCode and pi',
  },
  DEEPSEEK_API_KEY: {
    channel: 'codingAgents',
    hosts: ['api.deepseek.com'],
    description: 'key of DeepSeek, for OpenCode and pi',
  },
  GEMINI_API_KEY: {
    channel: 'codingAgents',
    hosts: ['generativelanguage.googleapis.com'],
    description: 'key of Google Gemini, for OpenCode and pi',
  },
  GROQ_API_KEY: { channel: 'codingAgents', hosts: ['api.groq.com'], description: 'key of Groq' },
  MISTRAL_API_KEY: { channel: 'codingAgents', hosts: ['api.mistral.ai'], description: 'key of Mistral' },
  XAI_API_KEY: { channel: 'codingAgents', hosts: ['api.x.ai'], description: 'key of xAI' },
  CEREBRAS_API_KEY: { channel: 'codingAgents', hosts: ['api.cerebras.ai'], description: 'key of Cerebras' },
}

/** The names of a channel. */
export const listKnownNames = (channel: CredentialChannel): string[] =>
  Object.keys(KNOWN_SECRETS).filter((name) => KNOWN_SECRETS[name]?.channel === channel)
