// Prompts to the real pi, which the first prompt installs.
import { pi } from '../../../agent/prompts/providers/pi.ts'
import { toolCall } from '../../support/model-server/replies.ts'
import { testPrompts } from './test-prompts.ts'

testPrompts({
  provider: 'pi',
  runCommand: (command) => toolCall('bash', { command }),
  installPackage: pi.installPackage,
  // Another provider may need no key.
  modelWithoutCredential: 'anthropic/claude-sonnet-5-5',
  signInHint: /ANTHROPIC_API_KEY/,
  unknownModel: 'fake/unknown',
  messages: { rejectedKey: /401.*Incorrect API key/, unknownModel: /unknown/ },
})
