// Prompts to the real OpenCode, which the first prompt installs.
import { opencode } from '../../../agent/prompts/providers/opencode.ts'
import { toolCall } from '../../support/model-server/replies.ts'
import { testPrompts } from './test-prompts.ts'

testPrompts({
  provider: 'opencode',
  runCommand: (command) => toolCall('bash', { command, description: 'test' }),
  installPackage: opencode.installPackage,
  // Another provider may need no key.
  modelWithoutCredential: 'anthropic/claude-sonnet-5-5',
  signInHint: /ANTHROPIC_API_KEY/,
  unknownModel: 'fake/unknown',
  messages: { rejectedKey: /^Incorrect API key$/, unknownModel: /may not know the model/ },
})
