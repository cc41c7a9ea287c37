// The member that the proxy adds, told to the compiler: from here on `token.probability` is as good as `token.logprob`.
import "openai/resources/chat/completions";

declare module "openai/resources/chat/completions/completions" {
  interface ChatCompletionTokenLogprob {
    probability: number | null;
  }
  namespace ChatCompletionTokenLogprob {
    interface TopLogprob {
      probability: number | null;
    }
  }
}
