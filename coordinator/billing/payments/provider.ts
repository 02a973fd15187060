// What Boxwood needs of a provider of payments. With BOXWOOD_BILLING=manual there is none: operators add credit.

/** A payment that has an outcome, or that will be reported later. `message` is for the owners. */
export type CollectResult =
  | { status: 'paid'; paymentId: string; amountMicros: number }
  | { status: 'failed'; message: string }
  | { status: 'pending' }

/** What the provider reports. `attempt` identifies a payment that the coordinator has started by itself; null: it has not. */
export type PaymentEvent =
  | {
      type: 'paid'
      workspaceId: string
      paymentId: string
      amountMicros: number
      attempt: string | null
      /** The card that the owner has saved with the payment. */
      savedCard: { customerId: string; paymentMethodId: string } | null
    }
  | { type: 'failed'; workspaceId: string; attempt: string; message: string }
  | {
      type: 'refunded'
      workspaceId: string
      chargeId: string
      /** All refunds of the charge. */
      refundedMicros: number
    }

export type Checkout = {
  workspaceId: string
  customerId: string
  amountCents: number
  saveCard: boolean
  returnUrl: string
}

export type Collection = {
  workspaceId: string
  customerId: string
  paymentMethodId: string
  amountCents: number
  /** A repeated call with the same attempt starts no second payment. */
  attempt: string
}

/** The functions throw when the provider cannot be reached. The call can be repeated then. */
export type PaymentProvider = {
  /** A repeated call for a workspace returns the same id. */
  createCustomer(customer: { workspaceId: string; email: string | null; name: string }): Promise<string>
  /** @returns the URL at which the owner pays */
  createCheckout(checkout: Checkout): Promise<string>
  /** Charges the saved card. */
  collect(collection: Collection): Promise<CollectResult>
  removeCard(paymentMethodId: string): Promise<void>
  /**
   * @returns null for an event that does not concern Boxwood
   * @throws SignatureError
   */
  readEvent(body: Buffer, signature: string): Promise<PaymentEvent | null>
}

/** The event does not come from the provider. */
export class SignatureError extends Error {
  override name = 'SignatureError'
}
