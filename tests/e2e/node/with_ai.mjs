// Vercel's `ai` with its OpenAI-compatible provider: what it parses has fixed members; `response.body` and the raw
// chunks are the answer as it came.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, streamText } from "ai";
import { answerJobs, pair } from "./say.mjs";

const read = (body) =>
  (body.choices ?? []).flatMap((choice) => (choice.logprobs?.content ?? []).map(pair));

await answerJobs("ai", async (base, api, stream) => {
  const provider = createOpenAICompatible({ name: "proxied", baseURL: `${base}/v1`, apiKey: "none" });
  const question = {
    model: provider("m"),
    prompt: "x",
    maxOutputTokens: 8,
    maxRetries: 0,
    providerOptions: { proxied: { logprobs: true, top_logprobs: 2 } },
  };
  if (!stream) {
    const { text, finishReason, usage, providerMetadata, response } = await generateText(question);
    const { body } = response;
    return { answer: [{ text, finishReason, usage, providerMetadata, response: { body } }], read: read(body) };
  }
  const result = streamText({ ...question, includeRawChunks: true, onError: () => {} });
  const answer = [];
  const pairs = [];
  for await (const part of result.fullStream) {
    if (part.type === "error") throw part.error;
    if (part.type === "raw") {
      answer.push({ rawValue: part.rawValue });
      pairs.push(...read(part.rawValue));
    } else if (part.type === "text-delta") {
      answer.push({ text: part.text });
    }
  }
  answer.push({ text: await result.text, finishReason: await result.finishReason, usage: await result.usage });
  return { answer, read: pairs };
});
