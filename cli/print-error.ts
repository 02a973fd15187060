// Prints errors on stderr.
import type { CliError } from './exit-codes.ts'
import { printMessage } from './output.ts'

export const printError = (error: CliError): void => printMessage(error.message)
