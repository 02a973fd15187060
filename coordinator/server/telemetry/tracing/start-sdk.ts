// Starts the OpenTelemetry SDK, which reads the OTEL_* variables. The package is optional, because it is large.
import { context, propagation, trace } from '@opentelemetry/api'
import { StartError } from '../../../base/start-error.ts'

const SDK_PACKAGE = '@opentelemetry/sdk-node'
/** Replaces the SDK's default, which adds the command line, the paths and the user of the coordinator to all spans. */
const RESOURCE_DETECTORS = 'env,host,serviceinstance'

/** Throws StartError when the package is not installed. @returns the function that sends the remaining spans and stops the SDK */
export async function startSdk(env: NodeJS.ProcessEnv): Promise<() => Promise<void>> {
  const { NodeSDK } = await import('@opentelemetry/sdk-node').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error
    throw new StartError(
      `The OTEL_* variables request traces, but the package ${SDK_PACKAGE} is not installed. Run \`npm install --no-save ${SDK_PACKAGE}\` in the directory of Boxwood, or set OTEL_SDK_DISABLED=true.`,
      { cause: error },
    )
  })
  env.OTEL_NODE_RESOURCE_DETECTORS ||= RESOURCE_DETECTORS
  const hasServiceName =
    Boolean(env.OTEL_SERVICE_NAME) || /(^|,)\s*service\.name\s*=/.test(env.OTEL_RESOURCE_ATTRIBUTES ?? '')
  const sdk = new NodeSDK({
    ...(hasServiceName ? {} : { serviceName: 'boxwood' }),
    // The SDK sends only traces: Prometheus reads the metrics, and the logs go to stderr.
    metricReaders: [],
    logRecordProcessors: [],
  })
  sdk.start()
  return async () => {
    try {
      await sdk.shutdown()
    } finally {
      // The SDK is global to the process.
      trace.disable()
      context.disable()
      propagation.disable()
    }
  }
}
